# The options of services.zmqcat.
{ lib, pkgs }:
let
  inherit (lib) literalExpression mkEnableOption mkOption types;
in
{
  enable = mkEnableOption "the zmqcat mailbox bus";

  package = mkOption {
    type = types.package;
    default = pkgs.callPackage ./package.nix { };
    defaultText = literalExpression "pkgs.callPackage ./package.nix { }";
    description = "The package that holds zmqcat, zmqcat-hub and zmqcat-spoke.";
  };

  role = mkOption {
    type = types.enum [
      "hub"
      "spoke"
      "serve"
      "join"
    ];
    apply =
      role:
      {
        serve = "hub";
        join = "spoke";
      }
      .${role} or role;
    example = "spoke";
    description = ''
      `hub`: this host holds the mailboxes. `spoke`: it joins a hub elsewhere with the token in
      {option}`services.zmqcat.tokenFile`. `serve` and `join` mean the same.
    '';
  };

  local = mkOption {
    type = types.bool;
    default = false;
    description = "The hub serves this host only: no tunnel, no relay, no token.";
  };

  listen = mkOption {
    type = types.listOf types.str;
    default = [ "unix:///run/zmqcat/zmqcat.sock" ];
    example = [
      "unix:///run/zmqcat/zmqcat.sock"
      "tcp://127.0.0.1:7420"
    ];
    description = ''
      Where programs of this host find the bus: unix paths, and addresses (no names) with a port.
      systemd opens them, before the daemon runs. Unix sockets have mode 0660 and the group
      {option}`services.zmqcat.group`; whoever reaches a TCP address may use the bus.
    '';
  };

  mailbox = mkOption {
    type = types.nullOr types.path;
    default = null;
    example = "/var/lib/zmqcat/mailbox";
    description = ''
      The directory that keeps the mailboxes of the hub; null: they live in memory and end with
      it. One outside /var/lib/zmqcat is made when missing, and belongs to
      {option}`services.zmqcat.user`.
    '';
  };

  allow = mkOption {
    type = types.listOf types.str;
    default = [ ];
    example = [ "nodekey:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" ];
    description = ''
      The only spokes that the hub lets in, as `zmqcat nodekey /var/lib/zmqcat/spoke.key` at each
      prints them. Empty: everybody who has the token.
    '';
  };

  tokenFile = mkOption {
    type = types.nullOr types.path;
    default = null;
    example = "/run/secrets/zmqcat-join-token";
    description = ''
      The file with the hub's join token, which a spoke needs. It is handed over as a systemd
      credential, so it may belong to root with mode 0400. A token that comes late is met by a
      later start. One that changes needs a restart of zmqcat-spoke.service: with sops-nix name
      that unit in `restartUnits`; with agenix restart it yourself.
    '';
  };

  keyFile = mkOption {
    type = types.nullOr types.path;
    default = null;
    example = "/run/secrets/zmqcat-key";
    description = ''
      The identity of this hub or spoke, as `zmqcat keygen` makes it. null: hub.key or spoke.key
      in /var/lib/zmqcat, made at the first start. A path in /var/lib/zmqcat is made and written
      by the daemon. Any other must exist; it is handed over as a systemd credential, so
      `zmqcat rotate` cannot write it, and a hub's should name its region.
    '';
  };

  user = mkOption {
    type = types.strMatching "[a-z_][a-z0-9_-]*";
    default = "zmqcat";
    description = "The user that the daemon runs as. Any but `zmqcat` is yours to define.";
  };

  group = mkOption {
    type = types.strMatching "[a-z_][a-z0-9_-]*";
    default = "zmqcat";
    description = ''
      The group of the daemon; its members may use the bus. Any but `zmqcat` is yours to define.
    '';
  };
}
