//! What is the same for all attacks: a service, an honest client beside the attacker, and what both must
//! still be like.

use std::time::Duration;

use burst_tests::attacks::{Attack, Child, Honest, Report, Service};

/// How long an honest client's frame may take beside an attack: far more than it takes, far less than
/// anybody would give up after.
pub(crate) const LONGEST: Duration = Duration::from_secs(4);
/// Frames of which an honest client is judged, before and beside.
const FRAMES: u64 = 300;
/// Those that must have come by the end of [`WATCH`] in any case.
const LEAST: u64 = 50;
/// How long it is watched at most.
const WATCH: Duration = Duration::from_secs(15);

/// A service under attack, with an honest client.
pub(crate) struct Scene {
    pub(crate) service: Service,
    pub(crate) honest: Honest,
    pub(crate) attacker: Child,
    name: &'static str,
}

impl Scene {
    /// A service with an honest client that is served well, and then an attack that is in force.
    #[track_caller]
    pub(crate) fn begin(attack: &Attack) -> Scene {
        let mut service = attack.start_service().unwrap_or_else(|error| panic!("{error}"));
        let mut honest = Honest::stream(service.socket()).unwrap_or_else(|error| panic!("{error}"));
        let alone = honest.report(FRAMES, WATCH).unwrap_or_else(|error| panic!("{error}"));
        tell(attack.name, "alone", &alone);
        alone.check(LEAST, LONGEST).unwrap_or_else(|error| panic!("alone: {error}"));
        let attacker = attack.begin(&service).unwrap_or_else(|error| {
            panic!("{error}; {}", service.end().unwrap_or_else(|| "the service lives".to_owned()))
        });
        Scene { service, honest, attacker, name: attack.name }
    }

    /// Fails unless the service lives and the honest client was answered every frame, rightly and soon.
    #[track_caller]
    pub(crate) fn is_served(&mut self) {
        let beside = self.honest.report(FRAMES, WATCH);
        self.service_lives();
        let beside = beside.unwrap_or_else(|error| panic!("{error}"));
        tell(self.name, "beside", &beside);
        beside
            .check(LEAST, LONGEST)
            .unwrap_or_else(|error| panic!("beside {}: {error}", self.name));
    }

    /// Waits for a line of the attacker that begins with this word.
    #[track_caller]
    pub(crate) fn attacker_says(&mut self, word: &str, within: Duration) {
        if let Err(error) = self.attacker.hear(word, within) {
            self.service_lives();
            panic!("{error}; {}", self.service.standing());
        }
    }

    #[track_caller]
    pub(crate) fn service_lives(&mut self) {
        if let Some(end) = self.service.end() {
            panic!("{}: {end}", self.name);
        }
    }

    /// What the service's metrics say in the end: waits for it.
    #[track_caller]
    pub(crate) fn comes_to(
        &mut self,
        what: &str,
        within: Duration,
        is_so: impl Fn(&burst_tests::attacks::Metrics) -> bool,
    ) {
        match self.service.wait_until(what, within, is_so) {
            Ok(took) => println!("{}: {what} after {took:?}", self.name),
            Err(error) => {
                self.service_lives();
                panic!("{}: {error}", self.name);
            }
        }
    }
}

/// One line for people.
pub(crate) fn tell(attack: &str, when: &str, report: &Report) {
    let Report { frames, wrong, failed, p50_us, p99_us, longest_us, .. } = report;
    println!(
        "{attack}, {when}: {frames} frames, p50 {p50_us} us, p99 {p99_us} us, longest {longest_us} us, \
         {wrong} wrong, {failed} failed"
    );
}
