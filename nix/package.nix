# zmqcat: the daemons, the command and the client library.
{
  lib,
  stdenv,
  pkg-config,
  cjson,
  libsodium,
  libuv,
  openssl,
  systemdLibs,
  mandoc,
  python3,
  socat,
  util-linux,
}:
stdenv.mkDerivation {
  pname = "zmqcat";
  version = "0.1.0";
  src = lib.cleanSourceWith {
    src = ../.;
    # What was built here before is not part of the source.
    filter = path: type: builtins.match "build(-.*)?|\\.git|__pycache__" (baseNameOf path) == null;
  };

  outputs = [
    "out"
    "dev"
    "man"
  ];
  strictDeps = true;
  enableParallelBuilding = true;
  nativeBuildInputs = [ pkg-config ];
  buildInputs = [
    cjson
    libsodium
    libuv
    openssl
  ]
  ++ lib.optional stdenv.hostPlatform.isLinux systemdLibs;
  makeFlags = [
    "PREFIX=${placeholder "out"}"
    "INCLUDEDIR=${placeholder "dev"}/include"
    "PKGCONFIGDIR=${placeholder "dev"}/lib/pkgconfig"
    "MANDIR=${placeholder "man"}/share/man"
    "LAUNCHDAEMONSDIR=${placeholder "out"}/Library/LaunchDaemons"
    # The store has no cache of libraries.
    "LDCONFIG="
  ];

  # The tests look at /proc.
  doCheck = stdenv.hostPlatform.isLinux;
  checkTarget = "check";
  nativeCheckInputs = [
    mandoc
    python3
    socat
    util-linux
  ];
  preCheck = ''
    patchShebangs tests bench docs
  '';

  meta = {
    description = "Mailbox bus for the programs of one host or of many";
    license = lib.licenses.mit;
    mainProgram = "zmqcat";
    platforms = lib.platforms.linux ++ lib.platforms.darwin;
  };
}
