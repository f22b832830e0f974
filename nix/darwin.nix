# services.zmqcat for nix-darwin: one hub or one spoke, as in launchd/*, with its sockets.
#
# launchd opens the sockets as root, and nix-darwin has no option for their group: on macOS a file
# has that of its directory. That directory is not in /var/run, which is empty at boot.
{
  config,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib) mkDefault mkIf optionals;
  cfg = config.services.zmqcat;
  directory = "/var/lib/zmqcat-bus";
  socket = "${directory}/zmqcat.sock";
  common = import ./common.nix {
    inherit lib cfg;
    # With .ctl after it.
    pathMax = 99;
    inherit control;
    morePaths.logFile = toString cfg.logFile;
  };
  inherit (common)
    fileMailbox
    hub
    role
    state
    tokenFile
    unit
    writable
    ;

  # launchd takes one address a name; the daemon itself listens on all others.
  first =
    let
      paths = builtins.filter (a: a ? path) common.addresses;
    in
    builtins.head (paths ++ common.addresses ++ [ { path = socket; } ]);
  control = "${first.path or socket}.ctl";
  others = builtins.filter (a: a != first) common.addresses;
  shown =
    a:
    if a ? path then
      "unix://${a.path}"
    else if a.v6 then
      "tcp://[${a.host}]:${toString a.port}"
    else
      "tcp://${a.host}:${toString a.port}";
  listeners =
    if first ? path then
      {
        SockPathName = first.path;
        SockPathMode = 432; # 0660
      }
    else
      {
        SockNodeName = first.host;
        SockServiceName = toString first.port;
        SockFamily = if first.v6 then "IPv6" else "IPv4";
        SockType = "stream";
      };

  arguments =
    optionals (others != [ ]) [
      "--socket-group"
      cfg.group
    ]
    ++ lib.concatMap (a: [
      "--listen"
      (shown a)
    ]) others
    ++ optionals (tokenFile != null) [
      "--token-file"
      tokenFile
    ]
    ++ common.arguments {
      # Without a reload: what changes has to be seen in the plist.
      allowArguments = common.allowEach ++ common.allowNamed;
      keyArgument = common.keyFile;
    };

  ownUser = cfg.user == "zmqcat";
  ownGroup = cfg.group == "zmqcat";
  # The first number that nix-darwin and macOS leave free; users.users.zmqcat.uid is another.
  id = 541;
  make =
    mode: owner: path:
    "install -d -m ${mode} -o ${owner} -g ${cfg.group} ${lib.escapeShellArg path}\n";
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
      logFile = lib.mkOption {
        type = lib.types.path;
        default = "/var/log/zmqcat.log";
        example = "/var/lib/zmqcat/log";
        description = "The file that gets what the daemon says, never a secret.";
      };
    };

  config = mkIf cfg.enable {
    assertions = common.assertions ++ [
      {
        assertion = ownGroup || cfg.socketUsers == [ ];
        message = ''
          services.zmqcat.socketUsers: of the group ${cfg.group} you decide who is in it. Add them
          there, or write group = "zmqcat".'';
      }
    ];
    warnings =
      common.warnings
      ++ lib.optional (cfg.openFirewall && common.open != [ ]) ''
        services.zmqcat.openFirewall: the firewall of macOS goes by programs, not by ports. Remove
        it.''
      ++ lib.optional (cfg.role == "join" && tokenFile != null) ''
        services.zmqcat.tokenFile: the daemon reads ${tokenFile} itself, and is not root: the file
        must belong to ${cfg.user}: age.secrets.NAME.owner = "${cfg.user}", or the same of
        sops.secrets. Write role = "spoke" once it does.'';

    environment.systemPackages = [ cfg.package ];
    # The command knows the usual place of Linux.
    environment.variables.ZMQCAT_LISTEN = mkDefault (shown first);

    users.users = mkIf ownUser {
      zmqcat = {
        uid = mkDefault id;
        gid = mkDefault (config.users.groups.${cfg.group}.gid or 20);
        home = state;
        isHidden = true;
        description = "zmqcat mailbox bus";
      };
    };
    users.knownUsers = mkIf ownUser [ "zmqcat" ];
    users.groups = mkIf ownGroup {
      zmqcat = {
        gid = mkDefault id;
        members = [ cfg.user ] ++ cfg.socketUsers;
      };
    };
    users.knownGroups = mkIf ownGroup [ "zmqcat" ];

    # After the users, before launchd opens the sockets.
    system.activationScripts.launchd.text = lib.mkBefore (
      make "0700" cfg.user state
      + make "0755" "root" directory
      + lib.optionalString (writable != null) (
        lib.optionalString fileMailbox "[ -d ${lib.escapeShellArg writable} ] || "
        + make "0700" cfg.user writable
      )
    );

    launchd.daemons.${unit} = {
      # A shell runs it, once the store is there.
      command = lib.escapeShellArgs ([ "${cfg.package}/bin/${unit}" ] ++ arguments);
      environment.STATE_DIRECTORY = state;
      serviceConfig = {
        Label = "org.zmqcat.${role}";
        UserName = cfg.user;
        GroupName = cfg.group;
        WorkingDirectory = state;
        Umask = 63; # 0077
        RunAtLoad = true;
        KeepAlive.SuccessfulExit = false;
        # launchd cannot be told which exit status is final: what is broken is tried rarely.
        ThrottleInterval = 30;
        ExitTimeOut = 10;
        SoftResourceLimits = {
          Core = 0;
          NumberOfFiles = 65536;
        };
        HardResourceLimits = {
          Core = 0;
          NumberOfFiles = 65536;
        };
        StandardOutPath = cfg.logFile;
        StandardErrorPath = cfg.logFile;
        Sockets = {
          Listeners = listeners;
          Control = {
            SockPathName = control;
            SockPathMode = 384; # 0600
          };
        };
      };
    };
  };
}
