# services.zmqcat for NixOS: one hub or one spoke, as in systemd/*, with its sockets.
{
  config,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib) mkIf optional optionals;
  cfg = config.services.zmqcat;
  hub = cfg.role == "hub";
  unit = "zmqcat-${cfg.role}";
  sockets = [
    "${unit}.socket"
    "${unit}-control.socket"
  ];
  state = "/var/lib/zmqcat";
  man = [ "man:${unit}(8)" ];

  # A path literal stays a path here: it is named in a message, never copied to the store.
  text = value: if value == null then null else toString value;
  mailbox = text cfg.mailbox;
  tokenFile = text cfg.tokenFile;
  keyFile = text cfg.keyFile;
  under = dir: path: path == dir || lib.hasPrefix "${dir}/" path;
  normal =
    path: !lib.hasInfix "//" path && builtins.match ".*/\\.\\.?(/.*)?" path == null;
  ownMailbox = mailbox != null && under state mailbox;
  ownKey = keyFile != null && under state keyFile;
  refusedPlaces = [
    "/dev"
    "/etc"
    "/home"
    "/proc"
    "/root"
    "/run"
    "/sys"
    "/tmp"
    "/usr"
    "/var/tmp"
    builtins.storeDir
  ];

  # systemd expands % everywhere, and $ in command lines.
  percent = builtins.replaceStrings [ "%" ] [ "%%" ];
  quote = value: percent (builtins.toJSON value);
  argument = value: builtins.replaceStrings [ "$" ] [ "$$" ] (quote value);

  # What ListenStream= takes; null: it cannot be one.
  stream =
    address:
    let
      unix = builtins.match "(unix://)?(/[^[:space:]]+)" address;
      v4 = builtins.match "(tcp://)?([0-9.]+:[0-9]+)" address;
      v6 = builtins.match "(tcp://)?(\\[[0-9a-fA-F:.]+]:[0-9]+)" address;
      found = builtins.filter (m: m != null) [
        unix
        v4
        v6
      ];
    in
    if found == [ ] then null else percent (builtins.elemAt (builtins.head found) 1);

  arguments =
    optional (hub && cfg.local) "--local"
    ++ optionals (mailbox != null) [
      "--mailbox"
      (argument mailbox)
    ]
    ++ lib.concatMap (key: [
      "--allow"
      (argument key)
    ]) cfg.allow
    ++ optionals (keyFile != null) [
      "--key-file"
      (if ownKey then argument keyFile else "%d/key")
    ];
  credentials =
    optional (tokenFile != null) "token:${percent tokenFile}"
    ++ optional (keyFile != null && !ownKey) "key:${percent keyFile}";

  notInStore = name: path: {
    assertion = path == null || !under builtins.storeDir path;
    message = ''
      services.zmqcat.${name}: everybody can read the Nix store, where ${path} lies. Write the
      path of a file that is put there at run time, as a string: "/run/secrets/zmqcat".'';
  };
  noLiteral = name: value: {
    assertion = !builtins.isPath value;
    message = ''
      services.zmqcat.${name}: ${toString value} without quotes is a file of this configuration,
      which may end in the store. Write the path of a file of the running host, as a string:
      "/run/secrets/zmqcat".'';
  };
  plainPath = name: path: {
    assertion = path == null || normal path;
    message = "services.zmqcat.${name}: write ${path} without //, /. and /..";
  };
  forHub = name: unset: instead: {
    assertion = hub || unset;
    message = "services.zmqcat.${name} is for a hub. Of a spoke remove it${instead}.";
  };
  forTunnel = name: unset: {
    assertion = !(hub && cfg.local) || unset;
    message = "services.zmqcat.${name} is about the tunnel: remove it, or write local = false.";
  };
  listed = builtins.concatStringsSep "\", \"";
  badAllow = builtins.filter (k: builtins.match "nodekey:[0-9a-f]{64}" k == null) cfg.allow;
  badListen = builtins.filter (a: stream a == null) cfg.listen;
in
{
  options.services.zmqcat = import ./options.nix { inherit lib pkgs; };

  config = mkIf cfg.enable {
    assertions = [
      {
        assertion = hub || tokenFile != null;
        message = ''
          services.zmqcat.tokenFile: a spoke needs the token of its hub. Write the path of a file
          that holds what `zmqcat token` prints there:
          tokenFile = "/run/secrets/zmqcat-join-token".'';
      }
      {
        assertion = !hub || tokenFile == null;
        message = ''
          services.zmqcat.tokenFile is for a spoke. A hub makes its token itself, from its identity:
          remove tokenFile, or write keyFile = "${tokenFile}" if that file is a key file.'';
      }
      (forHub "allow" (cfg.allow == [ ]) ": the hub's configuration lists who may come in")
      (forHub "mailbox" (mailbox == null) ": the hub keeps the mailboxes")
      (forHub "local" (!cfg.local) ", or write role = \"hub\" for a bus of this host only")
      (forTunnel "allow" (cfg.allow == [ ]))
      (forTunnel "keyFile" (keyFile == null))
      (notInStore "tokenFile" tokenFile)
      (notInStore "keyFile" keyFile)
      (noLiteral "tokenFile" cfg.tokenFile)
      (noLiteral "keyFile" cfg.keyFile)
      (plainPath "mailbox" mailbox)
      (plainPath "keyFile" keyFile)
      {
        assertion = badAllow == [ ];
        message = ''
          services.zmqcat.allow: "${listed badAllow}" is no node key. Write nodekey: and 64
          small hex digits, as `zmqcat nodekey FILE` prints them at the spoke.'';
      }
      {
        assertion = badListen == [ ] && cfg.listen != [ ];
        message = ''
          services.zmqcat.listen: "${listed badListen}" cannot be listened on. Write one or more of
          "unix:///path", "tcp://127.0.0.1:port" and "tcp://[::1]:port", with an address instead
          of a name.'';
      }
      {
        assertion =
          mailbox == null || mailbox != state && !builtins.any (d: under d mailbox) refusedPlaces;
        message = ''
          services.zmqcat.mailbox: ${mailbox} cannot be written by the service. Write
          "${state}/mailbox", or a directory on a disk of its own such as "/srv/zmqcat".'';
      }
    ];

    environment.systemPackages = [ cfg.package ];

    users.users = mkIf (cfg.user == "zmqcat") {
      zmqcat = {
        isSystemUser = true;
        group = cfg.group;
        home = state;
        description = "zmqcat mailbox bus";
      };
    };
    users.groups = mkIf (cfg.group == "zmqcat") { zmqcat = { }; };

    systemd.sockets.${unit} = {
      description = "zmqcat ${cfg.role}, socket";
      documentation = man;
      wantedBy = [ "sockets.target" ];
      listenStreams = builtins.filter (s: s != null) (map stream cfg.listen);
      socketConfig = {
        FileDescriptorName = "bus";
        Service = "${unit}.service";
        SocketMode = "0660";
        SocketGroup = cfg.group;
        DirectoryMode = "0755";
        RemoveOnStop = true;
        Backlog = 4096;
        # A daemon that cannot start is not started again by every client that knocks.
        TriggerLimitIntervalSec = "10s";
        TriggerLimitBurst = 5;
      };
    };

    systemd.sockets."${unit}-control" = {
      description = "zmqcat ${cfg.role}, control socket";
      documentation = man;
      wantedBy = [ "sockets.target" ];
      listenStreams = [ "/run/zmqcat/control.sock" ];
      socketConfig = {
        FileDescriptorName = "control";
        Service = "${unit}.service";
        SocketMode = "0600";
        DirectoryMode = "0755";
        RemoveOnStop = true;
        TriggerLimitIntervalSec = "10s";
        TriggerLimitBurst = 5;
      };
    };

    # The daemon itself may not make a directory there.
    systemd.tmpfiles.settings = mkIf (mailbox != null && !ownMailbox) {
      "10-zmqcat".${percent mailbox}.d = {
        mode = "0700";
        inherit (cfg) user group;
      };
    };

    systemd.services.${unit} = {
      description = "zmqcat ${cfg.role}";
      documentation = man;
      wantedBy = [ "multi-user.target" ];
      aliases = [ "zmqcat.service" ];
      requires = sockets;
      wants = optional (!cfg.local) "network-online.target";
      after =
        sockets
        ++ optionals (!cfg.local) [
          "network-online.target"
          "nss-lookup.target"
        ];
      # A token that comes late, or a disk that is away for an hour, is met by the next attempt.
      startLimitIntervalSec = 0;
      unitConfig = mkIf (mailbox != null && !ownMailbox) { RequiresMountsFor = quote mailbox; };
      serviceConfig = import ./hardening.nix // {
        Type = "notify";
        NotifyAccess = "main";
        ExecStart = builtins.concatStringsSep " " ([ "${cfg.package}/bin/${unit}" ] ++ arguments);
        Sockets = sockets;
        User = cfg.user;
        Group = cfg.group;
        StateDirectory = "zmqcat";
        StateDirectoryMode = "0700";
        LoadCredential = credentials;
        ReadWritePaths = optional (mailbox != null && !ownMailbox) (quote mailbox);
        Restart = "on-failure";
        RestartSec = if hub then 1 else 5;
        # What cannot be used stays so until somebody changes it.
        RestartPreventExitStatus = 78;
        WatchdogSec = 30;
        TimeoutStopSec = 10;
      } // lib.optionalAttrs hub { # a spoke's credential stays what it is: no reload
        ExecReload = "/bin/sh -c 'kill -HUP $MAINPID'";
        # Reading a large log back takes its time.
        TimeoutStartSec = "15min";
      };
    };
  };
}
