# As much of nix-darwin as services.zmqcat sets, and no more: an option that is not here is an error.
{ lib }:
let
  inherit (lib) mkOption types;
  option = type: default: mkOption { inherit type default; };
  optional = type: option (types.nullOr type) null;
  module = m: option (types.attrsOf (types.submodule m)) { };
  strings = option (types.listOf types.str) [ ];
  closed = options: optional (types.submodule { inherit options; });
  limits = closed {
    Core = optional types.int;
    NumberOfFiles = optional types.int;
  };
  # launchd has more keys; nix-darwin's are closed.
  job = {
    Label = option types.str "";
    ProgramArguments = optional (types.listOf types.str);
    EnvironmentVariables = optional (types.attrsOf types.str);
    UserName = optional types.str;
    GroupName = optional types.str;
    WorkingDirectory = optional types.str;
    Umask = optional types.int;
    RunAtLoad = optional types.bool;
    KeepAlive = optional (
      types.either types.bool (types.submodule { options.SuccessfulExit = optional types.bool; })
    );
    ThrottleInterval = optional types.int;
    ExitTimeOut = optional types.int;
    SoftResourceLimits = limits;
    HardResourceLimits = limits;
    StandardOutPath = optional types.path;
    StandardErrorPath = optional types.path;
    Sockets = optional (
      types.attrsOf (
        types.submodule {
          options = {
            SockType = optional (types.enum [ "stream" "dgram" "seqpacket" ]);
            SockNodeName = optional types.str;
            SockServiceName = optional types.str;
            SockFamily = optional (types.enum [ "IPv4" "IPv6" ]);
            SockPathName = optional types.path;
            SockPathMode = optional types.int;
          };
        }
      )
    );
  };
in
{
  options = {
    assertions = option (types.listOf (
      types.submodule {
        options.assertion = mkOption { type = types.bool; };
        options.message = mkOption { type = types.str; };
      }
    )) [ ];
    warnings = strings;
    environment.systemPackages = option (types.listOf types.package) [ ];
    environment.variables = option (types.attrsOf types.str) { };
    system.activationScripts = module { options.text = option types.lines ""; };
    users.knownUsers = strings;
    users.knownGroups = strings;
    users.users = module {
      options = {
        uid = mkOption { type = types.int; };
        gid = option types.int 20;
        home = optional types.path;
        isHidden = option types.bool true;
        description = optional types.str;
      };
    };
    users.groups = module {
      options = {
        gid = mkOption { type = types.int; };
        members = strings;
      };
    };
    launchd.daemons = module (
      { config, ... }:
      {
        options = {
          command = option types.str "";
          environment = option (types.attrsOf types.str) { };
          serviceConfig = option (types.submodule { options = job; }) { };
        };
        config.serviceConfig = {
          EnvironmentVariables = lib.mkIf (config.environment != { }) config.environment;
          ProgramArguments = lib.mkIf (config.command != "") [
            "/bin/sh"
            "-c"
            "/bin/wait4path /nix/store && exec ${config.command}"
          ];
        };
      }
    );
  };

  shown = config: {
    inherit (config.environment) variables;
    known = {
      inherit (config.users) knownUsers knownGroups;
    };
    activation = builtins.mapAttrs (_: s: s.text) config.system.activationScripts;
    plists = builtins.listToAttrs (
      map (d: {
        name = "${d.serviceConfig.Label}.plist";
        value = d.serviceConfig;
      }) (builtins.attrValues config.launchd.daemons)
    );
  };
}
