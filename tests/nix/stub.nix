# A flake that stands for nixpkgs: our lib, and a stdenv that builds with what this machine has. Of the
# package's tests it runs some; tests for NixOS machines it evaluates.
{
  outputs =
    { self }:
    let
      lib = import ./lib.nix;
      nixos = import ./nixos.nix { inherit lib; };
      plain =
        system: name: script: env:
        derivation (
          env
          // {
            inherit name system;
            builder = "/bin/sh";
            args = [
              "-euc"
              script
            ];
            PATH = "/usr/local/bin:/usr/bin:/bin";
          }
        );
      build = ''
        patchShebangs() { test -d "$1"; }
        cp -R "$src" source
        chmod -R u+w source
        cd source
        make -s -j2 $makeFlags $buildFlags
        if [ -n "$doCheck" ]; then
          eval "$preCheck"
          make -s -j2 $makeFlags $checkTarget T=tests/unit/test_t
        fi
        if [ -n "$installPhase" ]; then
          eval "$installPhase"
        else
          make -s install $makeFlags
        fi
      '';
      mkDerivation =
        system: attrs:
        plain system "${attrs.pname}-${attrs.version}" build {
          inherit (attrs) src makeFlags outputs;
          buildFlags = attrs.buildFlags or "";
          doCheck = attrs.doCheck or false;
          checkTarget = attrs.checkTarget or "check";
          preCheck = attrs.preCheck or "";
          installPhase = attrs.installPhase or "";
        }
        // {
          inherit (attrs) meta version;
          overrideAttrs = more: mkDerivation system (attrs // more attrs);
        };
      packages =
        system:
        let
          tool = name: plain system name "mkdir $out" { };
          tools = [
            "cjson"
            "clang-tools"
            "libsodium"
            "libuv"
            "mandoc"
            "nixfmt"
            "openssl"
            "pkg-config"
            "python3"
            "socat"
            "systemdLibs"
            "util-linux"
          ];
          pkgs = lib.genAttrs tools tool // {
            inherit lib callPackage;
            mkShell =
              attrs:
              plain system "shell" "mkdir $out" {
                tools = map toString attrs.packages;
              };
            stdenv = {
              hostPlatform.isLinux = builtins.elem system lib.platforms.linux;
              mkDerivation = mkDerivation system;
            };
            testers.runNixOSTest =
              path:
              let
                test = import path { };
                node =
                  module:
                  (lib.evalModules {
                    modules = [
                      { inherit (nixos) options; }
                      module
                    ];
                    specialArgs = { inherit pkgs; };
                  }).config;
              in
              plain system "vm-test-${test.name}" ''printf %s "$nodes" >$out'' {
                nodes = builtins.toJSON (
                  builtins.mapAttrs (_: m: nixos.shown (node m) // { inherit ((node m)) users; }) test.nodes
                );
              }
              // {
                refused = lib.concatMap (m: builtins.filter (a: !a.assertion) (node m).assertions) (
                  builtins.attrValues test.nodes
                );
              };
          };
          callPackage =
            path: more:
            let
              f = import path;
            in
            f (builtins.intersectAttrs (builtins.functionArgs f) (pkgs // more));
        in
        pkgs;
    in
    {
      inherit lib;
      legacyPackages = lib.genAttrs (lib.platforms.linux ++ lib.platforms.darwin) packages;
    };
}
