//! A driver service that is killed and started again under a client in C, which sees it through NNAPI's functions
//! alone.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use burst_hal::OperationType;
use burst_testing::program;

use super::peer::{self, Service};

burst_testing::tests![a_killed_driver_is_stood_in_for_and_used_again_by_itself(&program("cc")?)];

fn service(path: &Path) -> Service {
    let operations =
        [OperationType::Add, OperationType::Mul].map(|operation| operation.code().to_string());
    let path = path.to_str().expect("a path of ours");
    let arguments = ["serve-part", path, "part", &operations.join(","), "0", "30"];
    let (child, mut says) = peer::spawn(&arguments, Stdio::null());
    let service = Service(child);
    let mut line = String::new();
    says.read_line(&mut line).expect("it says that it is ready");
    assert_eq!(line, "ready\n");
    service
}

fn a_killed_driver_is_stood_in_for_and_used_again_by_itself(cc: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, socket) = (folder.path().join("killed"), folder.path().join("burst.sock"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = std::env::current_exe().expect("a path");
    let libraries = own.parent().expect("a folder");
    let mut compile = Command::new(cc);
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror"]);
    compile.arg("-I").arg(root.join("../runtime/include")).arg("-o").arg(&program);
    compile.arg(root.join("tests/driver/client/killed.c"));
    compile.arg("-L").arg(libraries).arg("-lneuralnetworks");
    compile.arg(format!("-Wl,-rpath,{}", libraries.display()));
    assert!(compile.status().expect("cc starts").success());

    let mut running = service(&socket);
    let client = Command::new(&program)
        .env("BURST_SOCKET", &socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut client = client.expect("the client starts");
    let mut tells = client.stdin.take().expect("a pipe");
    let mut says = BufReader::new(client.stdout.take().expect("a pipe"));
    let mut hears = |word: &str| {
        let mut line = String::new();
        says.read_line(&mut line).expect("a pipe");
        assert_eq!(line.trim(), word);
    };
    for _ in 0..3 {
        hears("runs");
        running.kill();
        writeln!(tells, "killed").expect("a pipe");
        hears("does without");
        running = service(&socket);
        writeln!(tells, "again").expect("a pipe");
    }
    hears("right");
    assert!(client.wait().expect("it ends").success());
}
