# What services.zmqcat refuses, each with what to write instead.
{
  lib,
  cfg,
  # What common.nix found out.
  facts,
}:
with facts;
let
  notInStore = name: path: {
    assertion = path == null || encrypted || !under builtins.storeDir path;
    message = ''
      services.zmqcat.${name}: everybody can read the Nix store, where ${toString path} lies.
      Write the path of a file that is put there at run time, as a string:
      "/run/secrets/zmqcat".'';
  };
  noLiteral = name: value: {
    assertion = !builtins.isPath value || encrypted || under builtins.storeDir (toString value);
    message = ''
      services.zmqcat.${name}: ${toString value} without quotes is a file of this configuration,
      which may end in the store. Write the path of a file of the running host, as a string:
      "/run/secrets/zmqcat".'';
  };
  quotable = name: path: {
    assertion = path == null || builtins.match "[^'\\\n]*" path != null;
    message = ''
      services.zmqcat.${name}: write a path without ', backslash and line ends, which
      systemd-tmpfiles would take for something else.'';
  };
  plainPath = name: path: {
    assertion = path == null || normal path;
    message = ''
      services.zmqcat.${name}: write ${toString path} without //, /., /.. and a / at its end.'';
  };
  # A line of a unit.
  oneLine = name: path: {
    assertion = path == null || builtins.match "[^\\\n]*" path != null;
    message = "services.zmqcat.${name}: write a path without backslash and line ends.";
  };
  # In its state directory the daemon makes what is right there and no file of its own.
  direct = name: instead: own: path: {
    assertion =
      path == null
      || !under state path
      || !normal path
      || builtins.dirOf path == state && !builtins.elem (builtins.baseNameOf path) own;
    message = ''
      services.zmqcat.${name}: ${toString path} cannot be written by the service, or has a name
      that it needs itself. Write a path right in its directory: "${state}/${instead}".'';
  };
  forHub = name: unset: instead: {
    assertion = hub || unset;
    message = "services.zmqcat.${name} is for a hub. Of a spoke remove it${instead}.";
  };
  forTunnel = name: unset: {
    assertion = !(hub && cfg.local) || unset;
    message = "services.zmqcat.${name} is about the tunnel: remove it, or write local = false.";
  };
  seen = name: path: {
    assertion = path == null || under builtins.storeDir path || !underAny hidden path;
    message = ''
      services.zmqcat.${name}: the service does not see ${toString path}. Write a path outside
      ${builtins.concatStringsSep ", " hidden}, such as "${state}/${name}".'';
  };
  folder = builtins.dirOf mailbox;
  control = "/run/zmqcat/control.sock";
  # Files of the daemon.
  own = [
    "derpmap.json"
    "revoked"
    "token"
  ];
  label = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?";
  # A relay is [ host … port ].
  relay = builtins.match "(${label}(\\.${label})*|\\[[0-9a-fA-F:.]+])(:([0-9]+))?" region;
  relayPort = builtins.elemAt relay 5;
  goodRelay =
    builtins.match "[1-9][0-9]{0,8}" region != null
    || relay != null
    && builtins.match "[0-9]+" (builtins.head relay) == null
    && (relayPort == null || validPort relayPort);
  listed = values: builtins.concatStringsSep "\", \"" (map toString values);
  refuse = bad: message: {
    assertion = !bad;
    inherit message;
  };
in
[
  (refuse (!hub && tokenFile == null) ''
    services.zmqcat.tokenFile: a spoke needs the token of its hub. Write the path of a file
    that holds what `zmqcat token` prints there:
    tokenFile = "/run/secrets/zmqcat-join-token".'')
  (refuse (hub && tokenFile != null) ''
    services.zmqcat.tokenFile is for a spoke. A hub makes its token itself, from its identity:
    remove tokenFile, or write keyFile = "${toString tokenFile}" if that file is a key file.'')
  (refuse (encrypted && hub && (keyFile == null || ownKey)) ''
    services.zmqcat.encryptedCredentials: no file is encrypted here. Remove it, or write
    keyFile = "/etc/credstore.encrypted/key", which `systemd-creds encrypt --name=key` makes.'')
  (forHub "allow" (cfg.allow == [ ]) ": the hub's configuration lists who may come in")
  (forHub "allowFile" (allowFile == null) ": the hub's configuration names who may come in")
  (forHub "mailbox" (mailbox == null) ": the hub keeps the mailboxes")
  (forHub "fsync" (cfg.fsync == "always") ": the hub keeps the mailboxes")
  (forHub "region" (region == null) ": the token names the relay")
  (forHub "local" (!cfg.local) ", or write role = \"hub\" for a bus of this host only")
  (forTunnel "allow" (cfg.allow == [ ]))
  (forTunnel "allowFile" (allowFile == null))
  (forTunnel "keyFile" (keyFile == null))
  (forTunnel "forward" (cfg.forward == [ ]))
  (forTunnel "derpMap" (derpMap == null))
  (forTunnel "region" (region == null))
  (notInStore "tokenFile" tokenFile)
  (notInStore "keyFile" keyFile)
  (noLiteral "tokenFile" cfg.tokenFile)
  (noLiteral "keyFile" cfg.keyFile)
  (plainPath "mailbox" mailbox)
  (quotable "mailbox" mailbox)
  (direct "mailbox" "mailbox" (own ++ [ "hub.key" ]) mailbox)
  (plainPath "keyFile" keyFile)
  (oneLine "keyFile" keyFile)
  (direct "keyFile" "hub.key" own keyFile)
  (plainPath "tokenFile" tokenFile)
  (oneLine "tokenFile" tokenFile)
  (plainPath "allowFile" allowFile)
  (seen "allowFile" allowFile)
  (seen "derpMap" derpMap)
  (refuse (derpMap != null && builtins.match "https?://[^/]+.*|/.*" derpMap == null) ''
    services.zmqcat.derpMap: "${toString derpMap}" is neither an address nor a path. Write
    "https://host/derpmap.json" or "/path/derpmap.json".'')
  (refuse
    (region != null && !goodRelay)
    ''
      services.zmqcat.region: "${toString region}" is no relay. Write the number of a region of the
      map, or "relay.example.org", with ":port" if that is not 443.''
  )
  (refuse (badAllow != [ ]) ''
    services.zmqcat.allow: "${listed badAllow}" is no node key. Write nodekey: and 64
    small hex digits, as `zmqcat nodekey FILE` prints them at the spoke.'')
  (refuse (badListen != [ ] || listen == [ ]) ''
    services.zmqcat.listen: "${listed badListen}" cannot be listened on. Write one or more of
    "unix:///path" (at most ${toString pathMax} bytes), "tcp://127.0.0.1:port" and
    "tcp://[::1]:port", with an address instead of a name.'')
  (refuse (badForward != [ ]) (
    if hub then
      ''
        services.zmqcat.forward: "${listed badForward}" cannot be offered. Of a hub write ports of
        127.0.0.1, such as 5432, other than 7, which is the bus; a spoke may show them at
        another.''
    else
      ''
        services.zmqcat.forward: "${listed badForward}" cannot be shown here. The service may not
        use ports below 1024, or above 65535: write "8080:80" to show port 80 of the hub at 8080.''
  ))
  (refuse (lib.unique locals != locals) ''
    services.zmqcat.forward: a port is there twice. Write each once; a spoke shows ports that are
    the same at another, such as "8080:80".'')
  (refuse (builtins.length cfg.forward > 32)
    "services.zmqcat.forward: ${toString (builtins.length cfg.forward)} ports. Write 32 at most.")
  (refuse (badArgs != [ ]) ''
    services.zmqcat.extraArgs: a token there can be read by everybody. Put it into a file and write
    tokenFile = "/run/secrets/zmqcat-join-token".'')
  (refuse (mailbox != null && underAny readOnly mailbox) ''
    services.zmqcat.mailbox: ${toString mailbox} cannot be written by the service. Write
    "${state}/mailbox", or a directory on a disk of its own such as "/srv/zmqcat".'')
  (refuse
    (
      mailbox != null
      && !underAny readOnly mailbox
      && (
        mailbox == "/"
        || fileMailbox && (builtins.dirOf folder == "/" || builtins.elem folder shared)
      )
    )
    ''
      services.zmqcat.mailbox: beside ${toString mailbox} the service would have to write. Move it
      into a directory of its own and write that path, such as "${state}/mailbox.json".''
  )
  (refuse (mailbox != null && builtins.elem mailbox shared) ''
    services.zmqcat.mailbox: ${toString mailbox} would belong to ${cfg.user} alone, and others live
    in it. Write a directory of its own, such as "${state}/mailbox" or "/srv/zmqcat".'')
  (refuse (builtins.any (a: (a.path or null) == control) addresses) ''
    services.zmqcat.listen: ${control} is the control socket. Write another path for the bus.'')
]
