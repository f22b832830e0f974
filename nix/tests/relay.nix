# The DERP relay of the tests, which `make install` leaves out.
{ callPackage }:
(callPackage ../package.nix { }).overrideAttrs {
  pname = "zmqcat-test-relay";
  outputs = [ "out" ];
  buildFlags = [ "build/relay" ];
  doCheck = false;
  installPhase = ''
    install -D build/relay $out/bin/relay
  '';
}
