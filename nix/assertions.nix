# What services.zmqcat refuses, each with what to write instead.
{
  lib,
  cfg,
  pathMax,
  # What common.nix found out.
  facts,
}:
with facts;
let
  inherit (builtins)
    any
    attrNames
    concatStringsSep
    dirOf
    filter
    match
    ;
  inherit (import ./paths.nix)
    hidden
    inStore
    nested
    ownable
    plain
    state
    system
    under
    underAny
    ;
  inherit (import ./addresses.nix { inherit plain pathMax; }) clash parse validRegion;
  inherit (import ./arguments.nix)
    better
    given
    ofTheTunnel
    ofTheUnit
    unknown
    ;

  refuse = bad: message: {
    assertion = !bad;
    inherit message;
  };
  listed = values: concatStringsSep "\", \"" (map toString values);

  forHub =
    name: unset: instead:
    refuse (!hub && !unset) "services.zmqcat.${name} is for a hub. Of a spoke remove it${instead}.";
  local = hub && (cfg.local || given "local" cfg.extraArgs);
  forTunnel =
    name: unset:
    refuse (local && !unset)
      "services.zmqcat.${name} is about the tunnel: remove it, or write local = false.";

  # ---- paths ----

  paths = lib.filterAttrs (_: path: path != null) (
    {
      inherit
        allowFile
        keyFile
        mailbox
        tokenFile
        ;
      derpMap = if derpMap != null && lib.hasPrefix "/" derpMap then derpMap else null;
    }
    // morePaths
  );
  # A mailbox that is refused anyhow is in nobody's way.
  usable = writable == null || !underAny system writable && ownable writable;
  others = if usable then paths else removeAttrs paths [ "mailbox" ];
  ownName = "${role}.key";
  # Files that the daemon makes in its own directory.
  taken = [
    "derpmap.json"
    ownName
  ]
  ++ lib.optionals hub [
    "revoked"
    "token"
  ];
  isTaken =
    name: path:
    any (file: under "${state}/${file}" path && !(name == "keyFile" && file == ownName)) taken;
  # Other options that have this path, or what holds it; of two that have the same, one is told.
  holders =
    name: path:
    let
      holds = other: under others.${other} path && (others.${other} != path || other < name);
    in
    filter (other: other != name && holds other) (attrNames others);
  # The first reason against a path; "": none.
  against =
    name:
    let
      path = paths.${name};
      inside = holders name path;
    in
    if inStore path && name != "mailbox" then
      ""
    else if !plain path then
      ''
        services.zmqcat.${name}: write "${path}" without //, /., /.., ', backslash, line ends and a
        / at its end.''
    else if path == state then
      ''
        services.zmqcat.${name}: ${state} is the directory of the service itself. Write a name in
        it, such as "${state}/${name}".''
    else if isTaken name path then
      ''
        services.zmqcat.${name}: ${path} is for the daemon. Write another name, such as
        "${state}/${name}".''
    else if inside != [ ] then
      ''
        services.zmqcat.${name}: ${path} is what services.zmqcat.${builtins.head inside} names, or
        lies in it. Write another path, such as "${state}/${name}".''
    else if (name == "keyFile" || name == "mailbox") && under state path && dirOf path != state then
      ''
        services.zmqcat.${name}: nobody makes the directory of ${path}. Write
        "${state}/${baseNameOf path}".''
    else if (name == "allowFile" || name == "derpMap") && underAny hidden path then
      ''
        services.zmqcat.${name}: the service does not see ${path}. Write a path outside
        ${concatStringsSep ", " hidden}, such as "${state}/${name}".''
    else if name == "mailbox" && writable != null && underAny system writable then
      ''
        services.zmqcat.mailbox: ${path} cannot be written by the service. Write
        "${state}/${mailboxName}", or a directory on a disk of its own such as "/srv/zmqcat".''
    else if name == "mailbox" && !usable then
      ''
        services.zmqcat.mailbox: ${writable} would belong to the service alone, and nobody else
        could use it. Write "${state}/${mailboxName}", or a directory in one of your own, such as
        "/srv/zmqcat".''
    else
      "";
  mailboxName = if fileMailbox then "mailbox.json" else "mailbox";

  notInStore =
    name: path:
    refuse (path != null && !encrypted && inStore path) ''
      services.zmqcat.${name}: everybody can read the Nix store, where ${toString path} lies.
      Write the path of a file that is put there at run time, as a string:
      "/run/secrets/zmqcat".'';
  noLiteral =
    name: value:
    refuse (builtins.isPath value && !encrypted && !inStore (toString value)) ''
      services.zmqcat.${name}: ${toString value} without quotes is a file of this configuration,
      which may end in the store. Write the path of a file of the running host, as a string:
      "/run/secrets/zmqcat".'';

  # ---- addresses ----

  badListen = filter (value: parse value == null) listen;
  sockets = filter (a: a ? path) addresses;
  # The directory of the service is open to nobody else.
  inTheWay =
    a:
    any (nested a.path) (
      [
        control
        state
      ]
      ++ builtins.attrValues others
    )
    || any (b: b != a && nested a.path b.path) sockets;
  badSockets = filter inTheWay sockets;
  # A spoke listens for what it forwards, too.
  ports =
    filter (a: a ? port) addresses
    ++ lib.optionals (!hub) (
      lib.unique (
        map (f: {
          host = "127.0.0.1";
          port = f.local;
          v6 = false;
        }) forwards
      )
    );
  clashes = filter (a: builtins.length (filter (clash a) ports) > 1) ports;

  badForward = map (f: f.value) (
    filter (
      f:
      hub && (builtins.isString f.value || f.remote == 7)
      || f.local < (if hub then 1 else 1024)
      || f.local > 65535
      || f.remote < 1
      || f.remote > 65535
    ) forwards
  );
  locals = map (f: f.local) forwards;

  badAllow = filter (key: match "nodekey:[0-9a-f]{64}" key == null) cfg.allow;

  # ---- arguments ----

  tokens = filter (a: match "tc[A-Za-z0-9_-]{32,}=*" a != null) cfg.extraArgs;
  badArgs = unknown role cfg.extraArgs;
  has = name: given name cfg.extraArgs;
  noList = cfg.allow == [ ] && allowFile == null && !has "allow" && !has "allow-file";
in
map (name: refuse (against name != "") (against name)) (attrNames paths)
++ map (
  name:
  refuse (has name) ''
    services.zmqcat.extraArgs: the unit has to know of --${name}. Write it as
    services.zmqcat.${better.${name}}.''
) ofTheUnit
++ [
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
  (forTunnel "extraArgs" (!any has ofTheTunnel))
  (notInStore "tokenFile" tokenFile)
  (notInStore "keyFile" keyFile)
  (noLiteral "tokenFile" cfg.tokenFile)
  (noLiteral "keyFile" cfg.keyFile)
  (refuse (derpMap != null && match "https?://[^/]+.*|/.*" derpMap == null) ''
    services.zmqcat.derpMap: "${toString derpMap}" is neither an address nor a path. Write
    "https://host/derpmap.json" or "/path/derpmap.json".'')
  (refuse (region != null && !validRegion region) ''
    services.zmqcat.region: "${toString region}" is no relay. Write the number of a region of the
    map, or "relay.example.org", with ":port" if that is not 443.'')
  (refuse (badAllow != [ ]) ''
    services.zmqcat.allow: "${listed badAllow}" is no node key. Write nodekey: and 64
    small hex digits, as `zmqcat nodekey FILE` prints them at the spoke.'')
  (refuse (badListen != [ ] || listen == [ ]) ''
    services.zmqcat.listen: "${listed badListen}" cannot be listened on. Write one or more of
    "unix:///path" (at most ${toString pathMax} bytes, without //, /., /.. and a / at its end),
    "tcp://127.0.0.1:port" and "tcp://[::1]:port", with an address instead of a name.'')
  (refuse (badSockets != [ ]) ''
    services.zmqcat.listen: "${listed (map (a: a.path) badSockets)}" is in the way of another
    socket or file of the service, or of ${state}, where nobody else may look. Write another path,
    such as "unix:///run/zmqcat/bus.sock".'')
  (refuse (clashes != [ ]) ''
    services.zmqcat.listen: port ${listed (lib.unique (map (a: a.port) clashes))} is there twice.
    Write 0.0.0.0, or [::], which is for IPv4 too, alone, and forward other ports.'')
  (refuse (builtins.length addresses > 28) ''
    services.zmqcat.listen: ${toString (builtins.length addresses)} addresses. Write 28 at most.'')
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
  (refuse (tokens != [ ]) ''
    services.zmqcat.extraArgs: a token there can be read by everybody. Put it into a file and write
    tokenFile = "/run/secrets/zmqcat-join-token".'')
  (refuse (tokens == [ ] && badArgs != [ ]) ''
    services.zmqcat.extraArgs: ${unit} does not take "${listed badArgs}". Write options that
    `${unit} --help` lists, each word by itself: [ "--name" "bus" ].'')
  (refuse (has "no-psk" && !has "open" && noList) ''
    services.zmqcat.extraArgs: with --no-psk the relay could come in itself. Write allow, with the
    keys of the spokes, or add "--open" if everybody may.'')
  (refuse (has "open" && !(has "no-psk" && noList)) ''
    services.zmqcat.extraArgs: --open is for --no-psk without a list of spokes. Remove it, or write
    "--no-psk" "--open" and neither allow nor allowFile.'')
]
