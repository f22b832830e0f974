# The module with `settings` as services.zmqcat: what NixOS would do with it, as plain data.
{
  settings,
  package ? "/nowhere",
  module ? ../../nix/module.nix,
}:
let
  lib = import ./lib.nix;
  nixos = import ./nixos.nix { inherit lib; };
  fake = outPath: {
    type = "derivation";
    inherit outPath;
  };
  pkgs = {
    coreutils = "/usr";
    callPackage = _: _: fake package;
  };
  inherit
    (lib.evalModules {
      modules = [
        { inherit (nixos) options; }
        module
        { services.zmqcat = settings; }
      ];
      specialArgs = { inherit pkgs; };
    })
    config
    ;
in
{
  refused = map (a: a.message) (builtins.filter (a: !a.assertion) config.assertions);
  units = nixos.texts config;
  inherit (config) users;
  tmpfiles = config.systemd.tmpfiles.settings;
  services = builtins.mapAttrs (_: s: { inherit (s) wantedBy aliases; }) config.systemd.services;
  sockets = builtins.mapAttrs (_: s: s.wantedBy) config.systemd.sockets;
  packages = map (p: p.outPath) config.environment.systemPackages;
}
