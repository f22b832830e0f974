# As much of NixOS as services.zmqcat sets, and no more: an option that is not here is an error.
# Also the text of units, written as NixOS writes them.
{ lib }:
let
  inherit (lib) mkOption types;
  option =
    type: default:
    mkOption { inherit type default; };
  scalar = types.oneOf [
    types.bool
    types.int
    types.str
  ];
  section = option (types.attrsOf (types.oneOf [ scalar (types.listOf scalar) ])) { };
  strings = option (types.listOf types.str) [ ];
  common = {
    description = option types.str "";
    documentation = strings;
    requires = strings;
    wants = strings;
    after = strings;
    before = strings;
    conflicts = strings;
    wantedBy = strings;
    aliases = strings;
    unitConfig = section;
    startLimitIntervalSec = option (types.nullOr types.int) null;
    reloadTriggers = strings;
    restartTriggers = strings;
  };
  module = m: option (types.attrsOf (types.submodule m)) { };

  show = v: if builtins.isBool v then (if v then "true" else "false") else toString v;
  lines =
    attrs:
    builtins.concatStringsSep "" (
      lib.concatMap (
        name:
        map (v: "${name}=${show v}\n") (
          if builtins.isList attrs.${name} then attrs.${name} else [ attrs.${name} ]
        )
      ) (builtins.attrNames attrs)
    );
  words = name: list: lib.optionalAttrs (list != [ ]) { ${name} = toString list; };
  unit =
    u:
    "[Unit]\n"
    + lines (
      u.unitConfig
      // { Description = u.description; }
      // words "Documentation" u.documentation
      // words "Requires" u.requires
      // words "Wants" u.wants
      // words "After" u.after
      // words "Before" u.before
      // words "Conflicts" u.conflicts
      // lib.optionalAttrs (u.startLimitIntervalSec != null) {
        StartLimitIntervalSec = u.startLimitIntervalSec;
      }
      // words "X-Reload-Triggers" u.reloadTriggers
      // words "X-Restart-Triggers" u.restartTriggers
      // lib.optionalAttrs (!(u.stopIfChanged or true)) { X-StopIfChanged = false; }
    );
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
    environment.etc = module (
      { config, ... }:
      {
        options.text = option (types.nullOr types.lines) null;
        options.source = option types.path "/etc-sources/${builtins.hashString "md5" config.text}";
      }
    );
    networking.primaryIPAddress = option types.str "192.0.2.1";
    networking.firewall.allowedTCPPorts = option (types.listOf types.port) [ ];
    users.users = module {
      options = {
        isSystemUser = option types.bool false;
        isNormalUser = option types.bool false;
        group = option types.str "";
        home = option types.path "/var/empty";
        description = option types.str "";
      };
    };
    users.groups = module { options.members = strings; };
    systemd.tmpfiles.settings = option (types.attrsOf (
      types.attrsOf (
        types.attrsOf (
          types.submodule {
            options = {
              mode = option types.str "-";
              user = option types.str "-";
              group = option types.str "-";
            };
          }
        )
      )
    )) { };
    systemd.services = module {
      options = common // {
        serviceConfig = section;
        stopIfChanged = option types.bool true;
      };
    };
    systemd.sockets = module {
      options = common // {
        listenStreams = strings;
        socketConfig = section;
      };
    };
  };

  # What the configuration around the module has.
  others.users = {
    users.bus.group = "people";
    groups.people = { };
  };

  shown = config: {
    units =
      builtins.listToAttrs (
        map (name: {
          name = "${name}.service";
          value =
            unit config.systemd.services.${name}
            + "[Service]\n"
            + lines config.systemd.services.${name}.serviceConfig;
        }) (builtins.attrNames config.systemd.services)
      )
      // builtins.listToAttrs (
        map (name: {
          name = "${name}.socket";
          value =
            unit config.systemd.sockets.${name}
            + "[Socket]\n"
            + lines { ListenStream = config.systemd.sockets.${name}.listenStreams; }
            + lines config.systemd.sockets.${name}.socketConfig;
        }) (builtins.attrNames config.systemd.sockets)
      );
    services = builtins.mapAttrs (_: s: { inherit (s) wantedBy aliases; }) config.systemd.services;
    sockets = builtins.mapAttrs (_: s: s.wantedBy) config.systemd.sockets;
    tmpfiles = config.systemd.tmpfiles.settings;
    ports = config.networking.firewall.allowedTCPPorts;
    etc = builtins.mapAttrs (_: e: e.text) config.environment.etc;
  };
}
