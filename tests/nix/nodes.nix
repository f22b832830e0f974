# The machines of nix/tests/zmqcat.nix as plain data: units, users, directories.
let
  lib = import ./lib.nix;
  nixos = import ./nixos.nix { inherit lib; };
  # Where the containers of the tests have the programs.
  built = {
    type = "derivation";
    outPath = "/run/payload-ro";
  };
  node =
    module:
    let
      inherit
        (lib.evalModules {
          modules = [
            { inherit (nixos) options; }
            module
          ];
          specialArgs.pkgs.callPackage = _: _: built;
        })
        config
        ;
    in
    nixos.shown config
    // {
      refused = map (a: a.message) (builtins.filter (a: !a.assertion) config.assertions);
      users = {
        inherit (config.users) users groups;
      };
    };
in
builtins.mapAttrs (_: node) (import ../../nix/tests/zmqcat.nix { }).nodes
