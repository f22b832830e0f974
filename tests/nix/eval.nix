# The module with `settings` as services.zmqcat: what the system would do with it, as plain data.
{
  settings,
  # nixos or darwin; ./${system}.nix stands for its options.
  system ? "nixos",
  package ? "/nowhere",
  module ? ../../nix + "/${system}.nix",
  # Of nixpkgs, when it is at hand.
  lib ? import ./lib.nix,
}:
let
  stub = import (./. + "/${system}.nix") { inherit lib; };
  fake = outPath: {
    type = "derivation";
    name = "zmqcat";
    inherit outPath;
  };
  evaluated = lib.evalModules {
    modules = [
      { inherit (stub) options; }
      module
      (stub.others or { })
      { services.zmqcat = settings; }
    ];
    specialArgs.pkgs.callPackage = _: _: fake package;
  };
  inherit (evaluated) config;
in
{
  inherit (config) warnings;
  refused = map (a: a.message) (builtins.filter (a: !a.assertion) config.assertions);
  packages = map (p: p.outPath) config.environment.systemPackages;
  users = {
    inherit (config.users) users groups;
  };
}
// stub.shown config
