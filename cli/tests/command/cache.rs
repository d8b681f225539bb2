//! The key of compilations that clients keep in files, over the restarts of a service.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use burst_client::Client;
use burst_hal::{
    CompilationCache, ErrorStatus, Model, ModelBuilder, OperandType, OperationType, OutputSpec,
    PrepareOptions,
};

use crate::support::{self, Process, json, run};

burst_testing::tests![
    what_was_kept_before_a_restart_is_taken_after_it_and_not_with_another_key(),
    a_key_that_others_can_read_ends_the_start(),
    without_a_folder_or_with_no_cache_nothing_is_kept(),
    the_unit_gives_the_service_a_folder_for_its_key(),
];

struct Service {
    _process: Process,
    folder: tempfile::TempDir,
}

fn start(extra: &[&str], variables: &[(&str, &Path)]) -> Service {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let arguments = [&["serve", "--socket", socket.to_str().unwrap()], extra].concat();
    let mut command = support::burst(&arguments);
    command.envs(variables.iter().copied());
    let mut process = Process::start(command);
    assert!(process.line().starts_with("listening on "));
    Service { _process: process, folder }
}

impl Service {
    fn socket(&self) -> String {
        self.folder.path().join("burst.sock").to_str().unwrap().to_owned()
    }

    /// Asks it something about its device.
    fn device<T>(&self, ask: impl FnOnce(&burst_client::RemoteDevice) -> T) -> T {
        let client = Client::connect(self.socket()).unwrap();
        ask(&client.devices().unwrap()[0])
    }

    /// Model and data files that its device needs, as `burst devices` says.
    fn files(&self) -> (u64, u64) {
        let said = json(&run(&["devices", "--json", "--socket", &self.socket()]));
        let device = &said["devices"][0];
        let number = |name: &str| device[name].as_u64().unwrap();
        (number("model_cache_files"), number("data_cache_files"))
    }
}

fn model() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[1, 4]);
    let y = b.result_of(OperationType::Tanh, &[x], OutputSpec::f32(&[1, 4]));
    b.output(y);
    b.build().unwrap()
}

fn files() -> CompilationCache {
    let file = || vec![tempfile::tempfile().unwrap()];
    CompilationCache { token: [8; 32], model: file(), data: file() }
}

fn what_was_kept_before_a_restart_is_taken_after_it_and_not_with_another_key() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("burst");
    let of_state = ["--state", path.to_str().unwrap()];
    let cache = files();
    let first = start(&of_state, &[]);
    assert_eq!(first.files(), (1, 1));
    let options = PrepareOptions::default();
    first.device(|device| device.prepare_caching(&model(), &options, &cache).map(drop)).unwrap();
    drop(first);
    let taken = |service: &Service| {
        service.device(|device| device.prepare_from_cache(&cache, None).map(drop))
    };
    taken(&start(&of_state, &[])).unwrap();
    // The folder of the supervisor is looked for where none is named.
    let other = state.path().join("other");
    let refused = taken(&start(&[], &[("STATE_DIRECTORY", &other)])).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
    assert!(other.join("cache.key").exists());
    taken(&start(&[], &[("STATE_DIRECTORY", &path), ("HOME", &other)])).unwrap();
    fs::copy(other.join("cache.key"), path.join("cache.key")).unwrap();
    assert!(taken(&start(&of_state, &[])).is_err(), "the key is another one");
}

fn a_key_that_others_can_read_ends_the_start() {
    let state = tempfile::tempdir().unwrap();
    let key = state.path().join("cache.key");
    fs::write(&key, [1; 32]).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let output = support::burst(&["serve", "--socket", "/nonexistent/burst.sock"])
        .env("STATE_DIRECTORY", state.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    let path = key.to_str().unwrap();
    assert!(
        said.contains(path) && said.contains("mode 644") && said.contains("--no-cache"),
        "{said}"
    );
    // Named, a folder that cannot be used ends it too.
    let output = run(&["serve", "--socket", "/nonexistent/burst.sock", "--state", "/dev/null/x"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/dev/null/x"), "{said}");
}

fn without_a_folder_or_with_no_cache_nothing_is_kept() {
    let state = tempfile::tempdir().unwrap();
    for service in [
        start(&[], &[]),
        start(&["--no-cache"], &[("STATE_DIRECTORY", state.path())]),
        start(&[], &[("STATE_DIRECTORY", Path::new("/dev/null/x"))]),
    ] {
        assert_eq!(service.files(), (0, 0));
        let cache = files();
        let options = PrepareOptions::default();
        let prepared =
            service.device(|device| device.prepare_caching(&model(), &options, &cache).map(drop));
        prepared.unwrap();
        let refused = service.device(|device| device.prepare_from_cache(&cache, None).map(drop));
        assert_eq!(refused.unwrap_err().status(), ErrorStatus::GeneralFailure);
    }
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0, "no key is made");
}

fn the_unit_gives_the_service_a_folder_for_its_key() {
    let unit = fs::read_to_string(support::repository().join("dist/burst.service")).unwrap();
    for line in ["StateDirectory=burst", "StateDirectoryMode=0700"] {
        assert!(unit.lines().any(|one| one == line), "{line}");
    }
}
