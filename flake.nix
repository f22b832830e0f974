# Packages, overlay and the modules for NixOS and nix-darwin. There is no lock file: `nix flake lock`
# makes one, and a flake that uses this one has its own
# (inputs.zmqcat.inputs.nixpkgs.follows = "nixpkgs").
{
  description = "zmqcat, a mailbox bus for the programs of one host or of many";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system} system);
    in
    {
      packages = each (
        pkgs: system: rec {
          default = zmqcat;
          zmqcat = pkgs.callPackage ./nix/package.nix { };
        }
      );

      apps = each (
        pkgs: system: rec {
          default = zmqcat;
          zmqcat = {
            type = "app";
            program = "${self.packages.${system}.zmqcat}/bin/zmqcat";
            meta = { inherit (self.packages.${system}.zmqcat.meta) description; };
          };
        }
      );

      overlays.default = final: prev: { zmqcat = final.callPackage ./nix/package.nix { }; };

      nixosModules.default = {
        imports = [ ./nix/nixos.nix ];
      };

      darwinModules.default = {
        imports = [ ./nix/darwin.nix ];
      };

      checks = each (
        pkgs: system:
        { inherit (self.packages.${system}) zmqcat; }
        // nixpkgs.lib.optionalAttrs pkgs.stdenv.hostPlatform.isLinux {
          nixos = pkgs.testers.runNixOSTest ./nix/tests/zmqcat.nix;
          services = pkgs.testers.runNixOSTest ./nix/tests/services.nix;
        }
      );

      devShells = each (
        pkgs: system: {
          default = pkgs.mkShell {
            inputsFrom = [ self.packages.${system}.zmqcat ];
            packages = [
              pkgs.clang-tools
              pkgs.mandoc
              pkgs.python3
              pkgs.socat
            ];
          };
        }
      );

      formatter = each (pkgs: system: pkgs.nixfmt-tree or pkgs.nixfmt);
    };
}
