# zmqcat: the hub, the spoke, the command and the client library.
{
  lib,
  stdenv,
  pkg-config,
  cjson,
  libsodium,
  libuv,
  openssl,
  systemdLibs,
}:
stdenv.mkDerivation {
  pname = "zmqcat";
  version = "0.1.0";
  src = lib.cleanSourceWith {
    src = ../.;
    # What was built here before is not part of the source.
    filter = path: type: builtins.match "build(-.*)?|\\.git|__pycache__" (baseNameOf path) == null;
  };

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
    # The store has no cache of libraries.
    "LDCONFIG="
  ];

  meta = {
    description = "Mailbox bus for the programs of one host or of many";
    license = lib.licenses.mit;
    mainProgram = "zmqcat";
    platforms = lib.platforms.linux ++ lib.platforms.darwin;
  };
}
