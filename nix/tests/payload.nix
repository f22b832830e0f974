# What tests/guest/scenario.py gets: programs, the DERP relay of the tests, units and scripts.
{ callPackage, python3 }:
(callPackage ../package.nix { }).overrideAttrs (old: {
  pname = "zmqcat-test-payload";
  outputs = [ "out" ];
  nativeBuildInputs = old.nativeBuildInputs ++ [ python3 ];
  buildFlags = [
    "all"
    "build/relay"
  ];
  doCheck = false;
  installPhase = ''
    python3 tests/guest/payload.py $out
  '';
})
