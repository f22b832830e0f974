# A flake that stands for nixpkgs: our lib, and a stdenv that builds with what this machine has.
{
  outputs =
    { self }:
    let
      lib = import ./lib.nix;
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
        cp -R "$src" source
        chmod -R u+w source
        cd source
        make -s -j2 $makeFlags
        make -s install $makeFlags
      '';
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
          ];
          pkgs = lib.genAttrs tools tool // {
            inherit lib;
            mkShell =
              attrs:
              plain system "shell" "mkdir $out" {
                tools = map toString attrs.packages;
              };
            stdenv = {
              hostPlatform.isLinux = builtins.elem system lib.platforms.linux;
              mkDerivation =
                attrs:
                plain system "${attrs.pname}-${attrs.version}" build {
                  inherit (attrs) src makeFlags;
                }
                // {
                  inherit (attrs) meta version;
                };
            };
            callPackage =
              path: more:
              let
                f = import path;
              in
              f (builtins.intersectAttrs (builtins.functionArgs f) (pkgs // more));
          };
        in
        pkgs;
    in
    {
      inherit lib;
      legacyPackages = lib.genAttrs (lib.platforms.linux ++ lib.platforms.darwin) packages;
    };
}
