//! Hardware beside the processors: memory that devices share, cameras, counters of energy.

use rustix::io::Errno;

use super::Check;
use super::finding::{Finding, Named};
use super::machine::Machine;

pub(super) const CHECKS: &[Check] = &[dma_heaps, cameras, energy];

const HEAPS: &str = "/dev/dma_heap";
const CAMERAS: &str = "/sys/class/video4linux";
const ENERGY: &str = "/sys/class/powercap";

/// Of a list of devices so many are named, the others counted.
const NAMED: usize = 4;

/// Devices that may be used, and those that may not, the latter with why not.
fn sorted_out(
    machine: &Machine<'_>,
    devices: impl Iterator<Item = (String, String)>,
) -> (Vec<String>, Vec<String>) {
    let (mut usable, mut refused) = (Vec::new(), Vec::new());
    for (name, path) in devices {
        match machine.may_use(&path) {
            Ok(()) => usable.push(name),
            Err(Errno::ACCESS | Errno::PERM) => refused.push(format!("{name}: not permitted")),
            Err(errno) => refused.push(format!("{name}: {errno}")),
        }
    }
    (usable, refused)
}

/// Names with commas, so many of them.
fn enumerated(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn dma_heaps(machine: &Machine<'_>) -> Finding {
    let named = Named("dma_heaps");
    let heaps = match machine.list(HEAPS) {
        Ok(heaps) if !heaps.is_empty() => heaps,
        _ => {
            return named.absent(
                "none",
                "Memory for frames is the service's or the client's, which is all that the CPU needs. What a camera or an accelerator shares can still be handed over.",
                "for buffers that devices share: a kernel with CONFIG_DMABUF_HEAPS",
            );
        }
    };
    let paths = heaps.iter().map(|heap| (heap.clone(), format!("{HEAPS}/{heap}")));
    let effect =
        "Frames can lie in memory that cameras and accelerators share (`burst_shm::DmaHeap`).";
    match sorted_out(machine, paths) {
        (usable, refused) if refused.is_empty() => named.fine(enumerated(&usable), effect),
        (usable, refused) if !usable.is_empty() => {
            named.fine(format!("{}; {}", enumerated(&usable), enumerated(&refused)), effect)
        }
        (_, refused) => named.worse(
            enumerated(&refused),
            "This user cannot make memory that cameras and accelerators share.",
            format!("a rule of udev that gives a group of yours {HEAPS}/*"),
        ),
    }
}

fn cameras(machine: &Machine<'_>) -> Finding {
    let named = Named("cameras");
    let devices = match machine.list(CAMERAS) {
        Ok(devices) if !devices.is_empty() => devices,
        _ => {
            return named.absent(
                "none",
                "The synthetic camera, pictures, videos and raw frames from a pipe are there always.",
                "plug one in; in a container let it have /dev/video0",
            );
        }
    };
    let with_name = |device: &String| {
        let name = machine.read(&format!("{CAMERAS}/{device}/name"));
        let said = name.map_or_else(|_| device.clone(), |name| format!("{device} ({name})"));
        (said, format!("/dev/{device}"))
    };
    let usable = devices.iter().filter(|device| machine.may_use(&format!("/dev/{device}")).is_ok());
    let effect = way_in(&usable.map(|device| format!("/dev/{device}")).collect::<Vec<_>>());
    match sorted_out(machine, devices.iter().map(with_name)) {
        (usable, refused) if refused.is_empty() => named.fine(enumerated(&usable), effect),
        (usable, refused) if !usable.is_empty() => {
            named.fine(format!("{}; {}", enumerated(&usable), enumerated(&refused)), effect)
        }
        (_, refused) => named.worse(
            enumerated(&refused),
            "This user cannot read it.",
            "join the group that owns /dev/video*, mostly `video`",
        ),
    }
}

/// How frames of these cameras are had.
fn way_in(cameras: &[String]) -> String {
    let sources: Vec<String> = cameras.iter().map(|path| format!("--source {path}")).collect();
    let what_it_can_do = "`burst stream --list-sources` says in what sizes and formats.";
    format!("Frames come with `burst stream` and {}; {what_it_can_do}", enumerated(&sources))
}

fn energy(machine: &Machine<'_>) -> Finding {
    let named = Named("energy");
    let guessed = "`burst calibrate` takes power for proportional to time and threads.";
    let packages: Vec<String> = machine
        .list(ENERGY)
        .unwrap_or_default()
        .into_iter()
        .filter(|name| name.matches(':').count() == 1) // whole packages, not what is inside of one
        .collect();
    if packages.is_empty() {
        return named.absent(
            "no counters",
            guessed,
            "none in a virtual machine; else the module intel_rapl_common",
        );
    }
    let readable = |name: &&String| machine.number(&format!("{ENERGY}/{name}/energy_uj")).is_ok();
    let read = packages.iter().filter(readable).count();
    let found = format!("{read} of {} counters can be read", packages.len());
    if read == packages.len() {
        return named.fine(found, "`burst calibrate` measures energy.");
    }
    named.worse(found, guessed, "run `burst calibrate` as root")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict::{Absent, Fine, Worse};
    use super::super::testing::MadeUp;
    use super::*;

    #[test]
    fn heaps_that_may_not_be_used_are_no_heaps() {
        assert_eq!(MadeUp::new().look(dma_heaps).verdict, Absent);
        let heaps = || MadeUp::new().file("dev/dma_heap/system", "").file("dev/dma_heap/cma", "");
        let fine = heaps().look(dma_heaps);
        assert_eq!((fine.verdict, fine.found.as_str()), (Fine, "cma, system"));
        let refused = heaps().refused(Errno::ACCESS).look(dma_heaps);
        assert_eq!(refused.verdict, Worse);
        assert_eq!(refused.found, "cma: not permitted, system: not permitted");
        let part = heaps().refused_path("dev/dma_heap/cma", Errno::IO).look(dma_heaps);
        assert_eq!(part.verdict, Fine);
        assert!(part.found.starts_with("system; cma: "), "{part:?}");
    }

    #[test]
    fn cameras_have_the_names_that_they_give_themselves() {
        assert_eq!(MadeUp::new().look(cameras).verdict, Absent);
        let one = || MadeUp::new().file("sys/class/video4linux/video0/name", "Webcam: HD\n");
        let fine = one().look(cameras);
        assert_eq!((fine.verdict, fine.found.as_str()), (Fine, "video0 (Webcam: HD)"));
        assert!(fine.effect.contains("`burst stream` and --source /dev/video0;"), "{fine:?}");
        assert_eq!(one().refused(Errno::ACCESS).look(cameras).verdict, Worse);
        let many = (1..7).fold(one(), |made_up, at| {
            made_up.file(&format!("sys/class/video4linux/video{at}/index"), "0")
        });
        let many = many.look(cameras);
        assert_eq!(many.found, "video0 (Webcam: HD), video1, video2, video3 and 3 more");
        let two = one().file("sys/class/video4linux/video2/name", "Grabber\n");
        let each = two.look(cameras);
        let ways = "--source /dev/video0, --source /dev/video2;";
        assert!(each.effect.contains(ways), "one way for each: {each:?}");
        let part = two.refused_path("dev/video0", Errno::ACCESS).look(cameras);
        assert_eq!(
            (part.verdict, part.found.as_str()),
            (Fine, "video2 (Grabber); video0 (Webcam: HD): not permitted")
        );
        assert!(
            !part.effect.contains("/dev/video0"),
            "what may not be read is no source: {part:?}"
        );
    }

    #[test]
    fn counters_of_energy_count_where_they_can_be_read() {
        assert_eq!(MadeUp::new().look(energy).verdict, Absent);
        let counters = MadeUp::new()
            .file("sys/class/powercap/intel-rapl:0/energy_uj", "5\n")
            .file("sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n");
        let fine = counters.look(energy);
        assert_eq!((fine.verdict, fine.found.as_str()), (Fine, "1 of 1 counters can be read"));
        let hidden = MadeUp::new().file("sys/class/powercap/intel-rapl:0/name", "package-0\n");
        assert_eq!(hidden.look(energy).verdict, Worse);
    }
}
