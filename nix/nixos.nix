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
  socket = "/run/zmqcat/zmqcat.sock";
  common = import ./common.nix {
    inherit lib cfg;
    pathMax = 107;
    control = "/run/zmqcat/control.sock";
  };
  inherit (common)
    encrypted
    fileMailbox
    hub
    keyFile
    ownKey
    role
    tokenFile
    unit
    writable
    ;
  sockets = [
    "${unit}.socket"
    "${unit}-control.socket"
  ];
  man = [ "man:${unit}(8)" ];

  # systemd expands % everywhere, and $ in command lines.
  percent = builtins.replaceStrings [ "%" ] [ "%%" ];
  quote = value: percent (builtins.toJSON value);
  argument =
    value:
    if value == "%d/key" || builtins.match "[A-Za-z0-9_./:=,@+-]+" value != null then
      value
    else
      builtins.replaceStrings [ "$" ] [ "$$" ] (quote value);
  stream =
    a:
    if a ? path then
      percent a.path
    else if a.v6 then
      "[${a.host}]:${toString a.port}"
    else
      "${a.host}:${toString a.port}";

  # The list as a file, so that a change of it is a reload: nobody is thrown out who may stay.
  listedAllow = hub && cfg.allow != [ ] && common.allowNamed == [ ];
  arguments = common.arguments {
    allowArguments =
      if listedAllow then
        [
          "--allow-file"
          "/etc/zmqcat/allow"
        ]
      else
        common.allowEach ++ common.allowNamed;
    keyArgument = if ownKey then keyFile else "%d/key";
  };
  credentials =
    optional (tokenFile != null) {
      name = "token";
      path = tokenFile;
    }
    ++ optional (keyFile != null && !ownKey) {
      name = "key";
      path = keyFile;
    };
  loaded = map (c: "${c.name}:${percent c.path}") credentials;
  # What the daemon gets while there is no such file: it says so, where systemd would only give up.
  missing = map (
    c: "${c.name}:missing:${builtins.replaceStrings [ "\\" ] [ "\\\\" ] c.path}"
  ) credentials;
in
{
  options.services.zmqcat =
    import ./options.nix {
      inherit
        lib
        pkgs
        cfg
        socket
        ;
    }
    // {
      encryptedCredentials = lib.mkOption {
        type = lib.types.bool;
        default = false;
        example = true;
        description = ''
          {option}`services.zmqcat.tokenFile`, and a {option}`services.zmqcat.keyFile` outside
          /var/lib/zmqcat, were encrypted for this host by `systemd-creds encrypt --name=token`,
          or `--name=key`. Such files are no secret: they may be part of the configuration.
        '';
      };
    };

  config = mkIf cfg.enable {
    inherit (common) warnings;
    assertions = common.assertions ++ [
      {
        assertion = config.users.users ? ${cfg.user};
        message = ''
          services.zmqcat.user: nobody defines ${cfg.user}. Remove it, or write
          users.users.${cfg.user} = { isSystemUser = true; group = "${cfg.group}"; };'';
      }
      {
        assertion = config.users.groups ? ${cfg.group};
        message = ''
          services.zmqcat.group: nobody defines ${cfg.group}. Remove it, or write
          users.groups.${cfg.group} = { };'';
      }
      {
        # It would be a second unit, beside the alias.
        assertion = !config.systemd.services ? zmqcat;
        message = ''
          systemd.services.zmqcat: zmqcat.service is another name of ${unit}.service. Write
          systemd.services.${unit}.'';
      }
    ];

    environment.systemPackages = [ cfg.package ];
    environment.etc = mkIf listedAllow {
      "zmqcat/allow".text = lib.concatMapStrings (key: "${key}\n") cfg.allow;
    };
    networking.firewall.allowedTCPPorts = mkIf cfg.openFirewall (map (a: a.port) common.open);

    users.users = mkIf (cfg.user == "zmqcat") {
      zmqcat = {
        isSystemUser = true;
        group = cfg.group;
        home = common.state;
        description = "zmqcat mailbox bus";
      };
    };
    users.groups = mkIf (cfg.group == "zmqcat" || cfg.socketUsers != [ ]) {
      ${cfg.group}.members = cfg.socketUsers;
    };

    systemd.sockets.${unit} = {
      description = "zmqcat ${role}, socket";
      documentation = man;
      wantedBy = [ "sockets.target" ];
      listenStreams = map stream common.addresses;
      socketConfig = {
        FileDescriptorName = "bus";
        Service = "${unit}.service";
        SocketMode = "0660";
        SocketGroup = cfg.group;
        DirectoryMode = "0755";
        RemoveOnStop = true;
        Backlog = 4096;
        # See systemd/*.socket.
        TriggerLimitIntervalSec = "10s";
        TriggerLimitBurst = 100;
      };
    };

    systemd.sockets."${unit}-control" = {
      description = "zmqcat ${role}, control socket";
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
        TriggerLimitBurst = 100;
      };
    };

    # The daemon itself may not make a directory there. That of a mailbox file is left as it is
    # when it exists.
    systemd.tmpfiles.settings = mkIf (writable != null) {
      "10-zmqcat".${percent writable}.d =
        builtins.mapAttrs (_: value: if fileMailbox then ":${value}" else value)
          {
            mode = "0700";
            inherit (cfg) user group;
          };
    };

    systemd.services.${unit} = {
      description = "zmqcat ${role}";
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
      # A switch restarts the service and leaves its sockets, where clients wait meanwhile.
      stopIfChanged = false;
      reloadTriggers = optional listedAllow config.environment.etc."zmqcat/allow".source;
      unitConfig = mkIf (writable != null) { RequiresMountsFor = quote writable; };
      serviceConfig =
        import ./hardening.nix
        // {
          Type = "notify";
          NotifyAccess = "main";
          ExecStart = builtins.concatStringsSep " " (
            [ "${cfg.package}/bin/${unit}" ] ++ map argument arguments
          );
          # As root, whose control socket is; it fails, and says why, when nothing was read again.
          ExecReload = "+${cfg.package}/bin/zmqcat reload";
          # One that cannot start holds back the clients that would start it again at once.
          ExecStopPost = "/bin/sh -c 'case \"$EXIT_STATUS\" in 2 | 78) sleep 3 ;; esac'";
          Sockets = sockets;
          User = cfg.user;
          Group = cfg.group;
          StateDirectory = "zmqcat";
          StateDirectoryMode = "0700";
          ${if encrypted then "LoadCredentialEncrypted" else "LoadCredential"} = loaded;
          SetCredential = missing;
          ReadWritePaths = optional (writable != null) (quote writable);
          Restart = "on-failure";
          RestartSec = if hub then 1 else 5;
          # What is unknown (2) or cannot be used (78) stays so until somebody changes it.
          RestartPreventExitStatus = "2 78";
          WatchdogSec = 30;
          TimeoutStopSec = 10;
        }
        // lib.optionalAttrs hub {
          # Reading a large log back takes its time.
          TimeoutStartSec = "15min";
        };
    };
  };
}
