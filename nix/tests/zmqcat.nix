# A hub and three spokes as NixOS machines: one that may come in, one that may not, one with a
# wrong token. `nix build .#checks.x86_64-linux.nixos` runs it; hosts.py says what happens.
{ ... }:
let
  # Users and how secrets get there are the same everywhere.
  common = {
    imports = [ ../nixos.nix ];
    services.zmqcat = {
      enable = true;
      socketUsers = [ "alice" ];
    };
    users.users.alice.isNormalUser = true;
    users.users.mallory.isNormalUser = true;
  };
  # Its token is of root, mode 0400, behind a link, as agenix or sops-nix places it.
  spoke = tokenFile: {
    imports = [ common ];
    services.zmqcat = {
      role = "spoke";
      inherit tokenFile;
      extraArgs = [
        "--wait-hub"
        "5s"
      ];
    };
  };
in
{
  name = "zmqcat";

  nodes.hub =
    {
      config,
      pkgs,
      ...
    }:
    {
      imports = [ common ];
      services.zmqcat = {
        role = "hub";
        mailbox = "/srv/bus/mailbox";
        allowFile = "/srv/allow";
        derpMap = "/var/lib/relay/map.json";
        compatSocket = true;
      };
      # There is no other relay in this network.
      systemd.services.relay = {
        wantedBy = [ "multi-user.target" ];
        before = [ "zmqcat-hub.service" ];
        serviceConfig = {
          ExecStart =
            "${pkgs.callPackage ./payload.nix { }}/bin/relay --dir /var/lib/relay --port 443"
            + " --address ${config.networking.primaryIPAddress}";
          # Its certificate, which the token names, is the same after a power cut.
          StateDirectory = "relay";
        };
      };
      networking.firewall.allowedTCPPorts = [ 443 ];
    };
  nodes.allowed = spoke "/run/agenix/token";
  nodes.denied = spoke "/run/secrets/token";
  nodes.wrong = spoke "/run/agenix/token";

  testScript = builtins.readFile ./hosts.py;
}
