# The options of services.zmqcat that NixOS and nix-darwin have in common.
{
  lib,
  pkgs,
  cfg,
  # Where programs find the bus.
  socket,
}:
let
  inherit (lib) literalExpression mkEnableOption mkOption types;
  # Paths of the running host.
  hostPath = types.nullOr types.path;
  userName = types.strMatching "[A-Za-z_][A-Za-z0-9_.-]*";
in
{
  enable = mkEnableOption "the zmqcat mailbox bus";

  package = mkOption {
    type = types.package;
    default = pkgs.callPackage ./package.nix { };
    defaultText = literalExpression "pkgs.callPackage ./package.nix { }";
    example = literalExpression "pkgs.zmqcat";
    description = "The package that holds zmqcat, zmqcat-hub and zmqcat-spoke.";
  };

  role = mkOption {
    type = types.enum [
      "hub"
      "spoke"
      "serve"
      "join"
    ];
    default = "hub";
    example = "spoke";
    description = ''
      `hub`: this host holds the mailboxes. `spoke`: it joins a hub elsewhere with the token in
      {option}`services.zmqcat.tokenFile`. `serve` and `join` are older names for the same.
    '';
  };

  local = mkOption {
    type = types.bool;
    default = false;
    example = true;
    description = "The hub serves this host only: no tunnel, no relay, no token.";
  };

  listen = mkOption {
    type = types.either types.str (types.listOf types.str);
    default = [ "unix://${socket}" ];
    example = [
      "unix://${socket}"
      "tcp://127.0.0.1:7420"
    ];
    description = ''
      Where programs of this host find the bus: unix paths, and addresses (no names) with a port.
      The system opens them, before the daemon runs. Unix sockets have mode 0660 and the group
      {option}`services.zmqcat.group`; whoever reaches a TCP address may use the bus.
    '';
  };

  compatSocket = mkOption {
    type = types.bool;
    default = builtins.elem cfg.role [ "serve" "join" ] && cfg.listen == [ "unix://${socket}" ];
    defaultText = literalExpression ''role is "serve" or "join", and listen is the default'';
    example = true;
    description = ''
      Serve the bus on /tmp/zmqcat.sock too, where programs look that were written for the Go
      `zmqcat`. They, too, must be in {option}`services.zmqcat.group`.
    '';
  };

  openFirewall = mkOption {
    type = types.bool;
    default = false;
    example = true;
    description = ''
      Open the TCP ports of {option}`services.zmqcat.listen` that other hosts could reach. Spokes
      need none: hub and spokes only dial out.
    '';
  };

  mailbox = mkOption {
    type = hostPath;
    default = null;
    example = "/var/lib/zmqcat/mailbox";
    description = ''
      The directory that keeps the mailboxes of the hub; null: they live in memory and end with
      it. One outside /var/lib/zmqcat is for nothing else: it is made when missing, and belongs to
      {option}`services.zmqcat.user` alone. A mailbox file of the Go `zmqcat` becomes such a directory
      at the first start; what it held before stays beside it as FILE.imported.
    '';
  };

  fsync = mkOption {
    type = types.enum [
      "always"
      "batch"
      "never"
    ];
    default = "always";
    example = "batch";
    description = ''
      When messages are on disk: `always` before the sender hears ok, `batch` within 50 ms after
      it, `never` when the system sees fit.
    '';
  };

  allow = mkOption {
    type = types.listOf types.str;
    default = [ ];
    example = [ "nodekey:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" ];
    description = ''
      The only spokes that the hub lets in, as `zmqcat nodekey /var/lib/zmqcat/spoke.key` at each
      prints them. Empty, and no {option}`services.zmqcat.allowFile`: everybody who has the token.
      Whom `zmqcat revoke` shut out stays out.
    '';
  };

  allowFile = mkOption {
    type = hostPath;
    default = null;
    example = "/var/lib/zmqcat/allow";
    description = ''
      A file with more such keys, one a line, that the daemon's user can read. The hub reads it
      when it starts and when it is reloaded.
    '';
  };

  tokenFile = mkOption {
    type = hostPath;
    default = null;
    example = "/run/secrets/zmqcat-join-token";
    description = ''
      The file with the hub's join token, which a spoke needs. Never one in the Nix store, which
      everybody can read.

      NixOS hands it over as a credential, so it may belong to root with mode 0400. A token that
      comes late is met by a later start; one that changes needs a restart of
      zmqcat-spoke.service. With sops-nix say so there:
      `sops.secrets.zmqcat-join-token.restartUnits = [ "zmqcat-spoke.service" ];`. With agenix:
      `systemd.services.zmqcat-spoke.restartTriggers = [ config.age.secrets.x.file ];`.

      On macOS the daemon reads the file itself, so it must belong to
      {option}`services.zmqcat.user`; one that is not there yet is waited for.
    '';
  };

  keyFile = mkOption {
    type = hostPath;
    default = null;
    example = "/run/secrets/zmqcat-key";
    description = ''
      The identity of this hub or spoke, as `zmqcat keygen` makes it. null: hub.key or spoke.key
      in /var/lib/zmqcat, made at the first start. A file in /var/lib/zmqcat is made and
      written by the daemon. Any other must exist, `zmqcat rotate` cannot write it, and a hub's
      should name its region; NixOS hands it over as a credential, on macOS the daemon's user must
      be able to read it.
    '';
  };

  forward = mkOption {
    type = types.listOf (types.either types.port (types.strMatching "[0-9]{1,5}:[0-9]{1,5}"));
    default = [ ];
    example = [ 5432 ];
    description = ''
      TCP ports of the hub's host that spokes may reach. At the hub: its ports, at 127.0.0.1. At
      a spoke: the ports of the hub that 127.0.0.1 here is to show, `"8080:80"` for port 80 at
      8080.
    '';
  };

  derpMap = mkOption {
    type = types.nullOr (types.either types.path types.str);
    default = null;
    example = "https://relay.example.org/derpmap.json";
    description = ''
      The relays that there are: an address or a file. null: those that Tailcat names. A spoke
      takes the relay that its token names.
    '';
  };

  region = mkOption {
    type = types.nullOr (types.either types.ints.positive types.str);
    default = null;
    example = "relay.example.org:443";
    description = ''
      The relay of the hub: the number of a region of the map, or a host. null: the map's first.
    '';
  };

  heartbeat = mkOption {
    type = types.strMatching "(${(import ./arguments.nix).heartbeat})?";
    default = "5s";
    example = "30s";
    description = "How often the hub pings a silent client; `0` for never.";
  };

  user = mkOption {
    type = types.strMatching "[a-z_][a-z0-9_-]*";
    default = "zmqcat";
    example = "bus";
    description = "The user that the daemon runs as. Any but `zmqcat` is yours to define.";
  };

  group = mkOption {
    type = types.strMatching "[a-z_][a-z0-9_-]*";
    default = "zmqcat";
    example = "bus";
    description = ''
      The group of the daemon; its members may use the bus. Any but `zmqcat` is yours to define.
    '';
  };

  socketUsers = mkOption {
    type = types.listOf userName;
    default = [ ];
    example = [ "alice" ];
    description = ''
      Users that may use the bus: they become members of {option}`services.zmqcat.group`.
      Whoever may use it may do everything on it.
    '';
  };

  extraArgs = mkOption {
    type = types.listOf types.str;
    default = [ ];
    example = [
      "--mailbox-cap"
      "10000"
    ];
    description = ''
      More arguments for the daemon, as {manpage}`zmqcat-hub(8)` and {manpage}`zmqcat-spoke(8)`
      list them. Everybody on the host can read them.
    '';
  };
}
