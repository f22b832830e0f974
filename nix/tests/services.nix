# tests/guest/scenario.py on NixOS: hub and spokes as units of one machine, through a day of an
# administrator and a power cut. `nix build .#checks.x86_64-linux.services` runs it.
{ ... }:
{
  name = "zmqcat-services";

  nodes.machine =
    { pkgs, ... }:
    {
      environment.systemPackages = [ pkgs.python3 ];
      environment.etc.payload.source = pkgs.callPackage ./payload.nix { };
    };

  # NixOS itself would give the units a PATH.
  testScript = ''
    run = (
        "ln -sfn /etc/payload /run/payload-ro && mkdir -p /run/result /srv/kept && "
        'systemctl set-environment "PATH=$PATH" && OWN_KERNEL=1 ROUNDS=20 '
        "SKIPPED=disk_of_the_hub_full "  # its disk is that of the system
        "python3 -B /run/payload-ro/%s.py /run/payload-ro /run/result >&2"
    )
    machine.wait_for_unit("multi-user.target")
    machine.succeed(run % "scenario")
    machine.crash()
    machine.start()
    machine.wait_for_unit("multi-user.target")
    machine.succeed(run % "after_cut")
  '';
}
