"""A guest with a kernel of its own: QEMU without KVM. The image is made of Debian's packages by
mmdebstrap and kept in the build folder under the hash of what it was made of; the kernel has
nvme and ext4 built in, so there is no initramfs.

Disks: root (changes are forgotten), the payload as a plain tar, and one that is kept. What the
guest tells comes back on its serial console, in lines that begin with @. All that the last one
said is in BUILD/guest/console.
"""
import base64, glob, hashlib, os, shutil, signal, subprocess, tarfile, threading

import payload
from payload import BUILD, SLOW, container, harness

PACKAGES = ("systemd", "systemd-sysv", "udev", "libsodium23", "libuv1", "libcjson1", "libssl3",
            "iproute2", "kmod", "dbus", "procps", "python3", "linux-image-cloud-amd64")
TOOLS = ("qemu-system-x86_64", "mmdebstrap", "mke2fs")
# Nothing of these is used there.
LEFT_OUT = ("boot/initrd.img*", "usr/share/doc", "usr/share/man", "usr/share/locale",
            "usr/lib/modules/*/kernel/drivers", "var/cache/apt/archives/*")
# What a boot does without: devices and modules are built in, the disks have no other users.
MASKED = ("systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udevd-control.socket",
          "systemd-udevd-kernel.socket", "dbus.service", "dbus.socket", "e2scrub_reap.service",
          "systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount",
          "kmod-static-nodes.service", "systemd-modules-load.service",
          "systemd-random-seed.service", "systemd-logind.service",
          "systemd-user-sessions.service", "systemd-update-utmp.service", "getty.target",
          "systemd-tmpfiles-setup.service", "systemd-tmpfiles-setup-dev.service", "timers.target",
          "systemd-networkd.service", "systemd-firstboot.service", "systemd-pstore.service",
          "systemd-journal-flush.service", "systemd-update-utmp-runlevel.service", "swap.target",
          "systemd-sysusers.service", "cryptsetup.target", "remote-fs.target")
UNIT = r"""[Unit]
After=multi-user.target
[Service]
Type=oneshot
StandardOutput=tty
TTYPath=/dev/ttyS0
ExecStart=/bin/sh -c 'mkdir -p /run/payload-ro /srv/kept && \
    tar -C /run/payload-ro -xf /dev/nvme1n1 && mount /dev/nvme2n1 /srv/kept && \
    exec sh /run/payload-ro/run.sh'
FailureAction=poweroff-immediate
SuccessAction=poweroff-immediate
TimeoutStartSec=infinity
"""
# Checks that are about the manager and the programs only, and many starts long.
SKIPPED = ("reload_of_a_bad_list_changes_nothing", "h12_odd_bytes", "h12_encrypted_credential",
           "h13_mailbox_elsewhere", "h13_mailbox_file_of_the_go_program_elsewhere",
           "r11_socket_and_service_change_together")
APPEND = ("root=/dev/nvme0n1 rw init=/lib/systemd/systemd console=ttyS0 quiet mitigations=off "
          "tsc=reliable no_timer_check nokaslr audit=0 apparmor=0 random.trust_cpu=on "
          "selinux=0 systemd.show_status=0 ") + " ".join("systemd.mask=" + m for m in MASKED)
QEMU = ("qemu-system-x86_64", "-M", "q35,hpet=off", "-accel", "tcg,tb-size=512", "-cpu", "max",
        "-smp", "1", "-m", "768", "-nodefaults", "-display", "none", "-no-reboot",
        "-serial", "stdio", "-append", APPEND)


def run(argv, **more):
    got = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, **more)
    if got.returncode != 0:
        raise AssertionError("%s: %s" % (argv[0], got.stdout[-2000:]))


def need_tools():
    missing = [t for t in TOOLS if shutil.which(t) is None]
    if missing or os.getuid() != 0 or os.uname().machine != "x86_64":
        harness.skip("needs root, an x86_64 machine and " + ", ".join(missing or TOOLS))


def image():
    """Root image and kernel, made when they are not there; their folder."""
    need_tools()
    recipe = repr((PACKAGES, LEFT_OUT, UNIT))
    folder = os.path.join(BUILD, "guest", hashlib.sha256(recipe.encode()).hexdigest()[:16])
    if not os.path.exists(folder):
        work = folder + ".new"
        shutil.rmtree(os.path.dirname(folder), True)
        os.makedirs(work)
        try:
            make_image(work)
        except BaseException:
            shutil.rmtree(work, True)
            raise
        os.rename(work, folder)
    return folder


def make_image(folder):
    root = os.path.join(folder, "root")
    run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=" + ",".join(PACKAGES),
         "--aptopt=Acquire::Languages \"none\"", "bookworm", root], timeout=900)
    for name in ("dev", "proc", "sys"):  # it does not try twice when they are busy
        if os.path.ismount(os.path.join(root, name)):
            run(["umount", "--recursive", os.path.join(root, name)])
    shutil.copy(glob.glob(root + "/boot/vmlinuz-*")[0], folder + "/vmlinuz")
    for pattern in LEFT_OUT:
        for path in glob.glob(os.path.join(root, pattern)):
            (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)
    units = root + "/etc/systemd/system"
    container.write(units + "/scenario.service", UNIT)
    os.makedirs(units + "/multi-user.target.wants", exist_ok=True)
    os.symlink("../scenario.service", units + "/multi-user.target.wants/scenario.service")
    container.write(root + "/etc/fstab", "")
    run(["mke2fs", "-q", "-t", "ext4", "-d", root, folder + "/root.ext4", "900M"], timeout=300)
    shutil.rmtree(root)


class Guest:
    """One machine; boot() twice is the same one after a power cut."""

    def __init__(self):
        self.image = image()
        self.dir = harness.tempdir()
        self.process, self.lines = None, []
        container.write(os.path.join(BUILD, "guest", "console"), "")
        folder = os.path.join(self.dir, "payload")
        payload.fill(folder, 4 * SLOW, 10, 1, "/dev/ttyS0", SKIPPED)
        with open(folder + "/run.sh", "a") as f:
            f.write(OUT)
        with tarfile.open(self.dir + "/payload.tar", "w") as tar:
            tar.add(folder, ".")
        with open(self.dir + "/payload.tar", "ab") as f:
            f.truncate(-(-f.tell() // 65536) * 65536)
        os.makedirs(self.dir + "/empty")
        run(["mke2fs", "-q", "-t", "ext4", "-d", self.dir + "/empty", self.dir + "/kept.ext4",
             "128M"])

    def drive(self, name, path, snapshot):
        return ["-drive", "if=none,id=%s,file=%s,format=raw,snapshot=%s,cache=%s" % (
            name, path, *(("on", "unsafe") if snapshot else ("off", "writeback"))),
            "-device", "nvme,drive=%s,serial=%s" % (name, name)]

    def boot(self):
        argv = ["timeout", "-k", "5", str(int(600 * SLOW))] + list(QEMU)
        argv += ["-kernel", self.image + "/vmlinuz"]
        argv += self.drive("r", self.image + "/root.ext4", True)
        argv += self.drive("p", self.dir + "/payload.tar", True)
        argv += self.drive("k", self.dir + "/kept.ext4", False)
        self.lines = []
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        self.reader = threading.Thread(target=self.read, args=(self.process.stdout,))
        self.reader.start()

    def read(self, stream):
        with open(os.path.join(BUILD, "guest", "console"), "ab", buffering=0) as console:
            for line in stream:
                self.lines.append(line.decode(errors="replace").strip("\r\n\0 "))
                console.write(line)

    def told(self, what):
        """What the guest said in a line @WHAT BASE64, None: not yet."""
        for line in list(self.lines):
            words = line[line.find("@"):].split()
            if len(words) == 2 and words[0] == "@" + what:
                return base64.b64decode(words[1])
        return None

    def wait(self, what):
        """Until it is told, or the guest has ended."""
        harness.wait_for(lambda: self.told(what) is not None or self.process.poll() is not None,
                         650, 0.1)
        got = self.told(what)
        if got is None:
            raise AssertionError("the guest ended: %s\n%s" % (
                self.process.poll(), "\n".join(self.lines[-60:])))
        return got

    def cut(self):
        """The power: SIGKILL for QEMU, with all that the guest had not written."""
        if self.process is None:
            return
        if self.process.poll() is None:
            with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
                os.kill(int(f.read()), signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process = None


# The results in one line each; then it waits for the cut.
OUT = """
say() { printf '\\n@%s %s\\n' $1 "$(base64 -w0 $2)"; }
test -e /run/result/journal && tail -c 60000 /run/result/journal >/run/result/journal.end &&
    say journal /run/result/journal.end
say checks /run/result/checks.json
sleep 1000
"""
