#!/usr/bin/env python3
"""The flake and the package, off line: stub.nix stands for nixpkgs. In a full run the package is
built with the compiler of this machine."""
import json, os, re, shutil, subprocess, sys, unittest

import evaluate as ev
from evaluate import HERE, harness
from harness import LONG, ROOT

SYSTEMS = ["aarch64-darwin", "aarch64-linux", "x86_64-darwin", "x86_64-linux"]


def setUpModule():
    ev.need_nix()


class Flake(unittest.TestCase):
    def setUp(self):
        self.dir = harness.tempdir()
        self.stub = os.path.join(self.dir, "nixpkgs")
        self.flake = os.path.join(self.dir, "flake")
        self.store = os.path.join(self.dir, "nix")
        for folder in (self.stub, self.flake, self.store):
            os.mkdir(folder)
        shutil.copy(os.path.join(HERE, "stub.nix"), os.path.join(self.stub, "flake.nix"))
        for name in ("lib.nix", "nixos.nix", "darwin.nix"):
            shutil.copy(os.path.join(HERE, name), self.stub)
        shutil.copy(os.path.join(ROOT, "flake.nix"), self.flake)
        shutil.copytree(os.path.join(ROOT, "nix"), os.path.join(self.flake, "nix"))
        # What a store holds is read-only.
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", self.dir], check=True)

    def options(self, inputs="nixpkgs"):
        return ["--offline", "--override-input", inputs, "path:" + self.stub,
                "--no-write-lock-file"]

    def nix(self, *words, inputs="nixpkgs", timeout=60):
        got = ev.nix("nix", *words, *self.options(inputs), store=self.store, timeout=timeout)
        self.assertEqual(got.returncode, 0, got.stderr[-3000:])
        return got.stdout

    def test_check(self):
        self.nix("flake", "check", "--no-build", "path:" + self.flake)

    def test_names(self):
        """What a flake that uses ours refers to."""
        shown = json.loads(self.nix("flake", "show", "--json", "path:" + self.flake))
        for output in ("packages", "apps", "checks", "devShells", "formatter"):
            self.assertEqual(sorted(shown[output]), SYSTEMS, output)
        for system in SYSTEMS:
            self.assertEqual(sorted(shown["packages"][system]), ["default", "zmqcat"])
            self.assertIn("default", shown["devShells"][system])
            self.assertIn("default", shown["apps"][system])
            self.assertEqual(sorted(shown["checks"][system]),
                             ["nixos", "services", "zmqcat"] if "linux" in system else ["zmqcat"])
        for output in ("overlays", "nixosModules"):
            self.assertIn("default", shown[output], output)
        self.assertIn("darwinModules", shown)

    def test_version(self):
        with open(os.path.join(ROOT, "Makefile")) as f:
            version = re.search(r"^VERSION := (.*)$", f.read(), re.M).group(1)
        got = self.nix("eval", "--raw", "path:%s#packages.x86_64-linux.default.version"
                       % self.flake)
        self.assertEqual(got, version)

    def test_machines_of_the_nixos_tests(self):
        """Nothing that they say is refused."""
        for name in ("nixos", "services"):
            got = self.nix("eval", "--json", "path:%s#checks.x86_64-linux.%s.refused"
                           % (self.flake, name))
            self.assertEqual(json.loads(got), [], name)

    def test_script_of_one_machine(self):
        """It names what is in the payload, and stops at what fails."""
        script = ev.value("(import %s/nix/tests/services.nix { }).testScript" % ROOT)
        said = []

        class Machine:
            def __getattr__(self, name):
                return lambda *args: said.append((name, *args))
        exec(compile(script, "testScript", "exec"), {"machine": Machine()})
        self.assertEqual([s[0] for s in said], ["wait_for_unit", "succeed", "crash", "start",
                                                "wait_for_unit", "succeed"])
        folder = harness.tempdir()
        payload = os.path.join(ROOT, "tests", "guest", "payload.py")
        subprocess.run([sys.executable, payload, folder], check=True)
        for command in (s[1] for s in said if s[0] == "succeed"):
            subprocess.run(["bash", "-n", "-c", command], check=True)
            for name in re.findall(r"/run/payload-ro/(\S+)", command):
                self.assertTrue(os.path.exists(os.path.join(folder, name)), name)

    def test_a_flake_that_uses_ours(self):
        """As huginn's: it follows nixpkgs, re-exports the packages, and imports both modules."""
        user = os.path.join(self.dir, "user")
        os.mkdir(user)
        harness.write_file(user + "/flake.nix", """{
            inputs.nixpkgs.url = "path:%s";
            inputs.zmqcat.url = "path:%s";
            inputs.zmqcat.inputs.nixpkgs.follows = "nixpkgs";
            outputs = { self, nixpkgs, zmqcat }:
                let
                    lib = nixpkgs.lib;
                    systems = [ "aarch64-darwin" "x86_64-darwin" "aarch64-linux" "x86_64-linux" ];
                    each = f: lib.genAttrs systems (s: f nixpkgs.legacyPackages.${s} s);
                    both = { imports = [ zmqcat.nixosModules.default ]; };
                    config = system: stub: module: settings: (lib.evalModules {
                        modules = [
                            { inherit (import (nixpkgs + "/${stub}.nix") { inherit lib; })
                                options; }
                            module
                            { services.zmqcat = settings // { enable = true; }; }
                        ];
                        specialArgs.pkgs = nixpkgs.legacyPackages.${system};
                    }).config;
                    join = { role = "join"; tokenFile = "/run/secrets/zmqcat-join-token"; };
                in {
                    packages = each (pkgs: s: { zmqcat = zmqcat.packages.${s}.zmqcat; });
                    overlays.default = final: prev: zmqcat.overlays.default final prev;
                    overlaid = (self.overlays.default nixpkgs.legacyPackages.x86_64-linux { }
                        ).zmqcat.outPath;
                    hub = (config "x86_64-linux" "nixos" both {
                        role = "serve"; mailbox = "/var/lib/zmqcat/mailbox.json";
                    }).systemd.services.zmqcat-hub.serviceConfig.ExecStart;
                    spoke = (config "aarch64-linux" "nixos" both join
                        ).systemd.services.zmqcat-spoke.serviceConfig.ExecStart;
                    mac = (config "aarch64-darwin" "darwin" zmqcat.darwinModules.default join
                        ).launchd.daemons.zmqcat-spoke.command;
                };
            }""" % (self.stub, self.flake))

        def value(name):
            return self.nix("eval", "--raw", "path:%s#%s" % (user, name), inputs="zmqcat/nixpkgs")

        package = value("packages.x86_64-linux.zmqcat.outPath")
        self.assertEqual(value("overlaid"), package)
        self.assertEqual(value("hub"), package + "/bin/zmqcat-hub --mailbox "
                         "/var/lib/zmqcat/mailbox.json")
        self.assertRegex(value("spoke"), "/bin/zmqcat-spoke$")
        self.assertRegex(value("mac"), "/bin/zmqcat-spoke .*--token-file "
                         "/run/secrets/zmqcat-join-token$")

    if LONG:
        def test_package_builds(self):
            """With make and the compiler of this machine; some of its tests run."""
            shutil.copytree(ROOT, self.flake, dirs_exist_ok=True, ignore=shutil.ignore_patterns(
                "build", "build-*", ".git", "__pycache__"))
            names = ["path:%s#zmqcat%s" % (self.flake, o) for o in ("", ".dev", ".man")]
            built = self.nix("build", "--no-link", "--json", *names, timeout=900)
            outputs = {}
            for b in json.loads(built):
                outputs.update(b["outputs"])
            self.assertEqual(sorted(outputs), ["dev", "man", "out"])
            for output, path in (("out", "bin/zmqcat"), ("out", "bin/zmqcat-hub"),
                                 ("out", "bin/zmqcat-spoke"), ("out", "lib/libzmqcat.so"),
                                 ("dev", "include/zmqcat.h"), ("dev", "lib/pkgconfig/zmqcat.pc"),
                                 ("man", "share/man/man1/zmqcat.1")):
                self.assertTrue(os.path.exists(os.path.join(outputs[output], path)), path)
            self.assertFalse(os.path.exists(outputs["out"] + "/include"))
            self.assertFalse(os.path.exists(outputs["out"] + "/share/man"))
            for name in ("zmqcat", "zmqcat-hub", "zmqcat-spoke"):
                shown = subprocess.run([os.path.join(outputs["out"], "bin", name), "--version"],
                                       text=True, capture_output=True)
                self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                self.assertIn(name, shown.stdout)
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "zmqcat"], text=True,
                                   env=dict(os.environ, PKG_CONFIG_PATH=outputs["dev"]
                                            + "/lib/pkgconfig"), capture_output=True)
            self.assertIn("-I%s/include" % outputs["dev"], flags.stdout)
            self.assertIn("-L%s/lib" % outputs["out"], flags.stdout)
            self.runs(outputs["out"])

        def runs(self, out):
            """nix run .# -- serve --local, in the flake's directory, and what it runs."""
            path = os.path.join(self.dir, "s")
            p = subprocess.Popen(["nix", "run", *self.options(), ".#", "--", "serve", "--local",
                                  "--listen", path], cwd=self.flake,
                                 env=ev.environment(self.store), stdin=subprocess.DEVNULL)
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            harness.wait_for(lambda: os.path.exists(path) or p.poll() is not None, 60)
            self.assertEqual(os.readlink("/proc/%d/exe" % p.pid), out + "/bin/zmqcat-hub")
            got = subprocess.run([out + "/bin/zmqcat", "ping", "--listen", path], text=True,
                                 capture_output=True)
            self.assertEqual((got.returncode, got.stdout), (0, "pong\n"))
            p.terminate()
            self.assertEqual(p.wait(10), 0)


if __name__ == "__main__":
    harness.main()
