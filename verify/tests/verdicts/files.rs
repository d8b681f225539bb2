//! Vector files that are not what they should be: an error that says so, never a panic.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::path::Path;

use burst_verify::{VectorError, open, specs};
use serde_json::{Value, json};

use crate::support::{floor_blob, floor_test, write_spec};

fn open_one(folder: &Path) -> Result<burst_verify::Vectors, VectorError> {
    open(&specs(folder).unwrap()[0])
}

fn refused(test: Value, blob: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    write_spec(folder.path(), "floor", &[test], blob);
    open_one(folder.path()).expect_err("a file that is wrong").to_string()
}

#[test]
fn a_folder_without_vectors_is_no_vector_folder() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(specs(folder.path()), Err(VectorError::Empty { .. })));
    assert!(matches!(specs(&folder.path().join("gone")), Err(VectorError::Io { .. })));
}

#[test]
fn references_to_what_is_not_there_are_refused() {
    let all = floor_blob();
    assert!(refused(floor_test("t", &[]), &all[..20]).contains("test t: data 12+12"));
    for path in ["/main/inputs/0", "/main/outputs/0", "/main/operations/0/inputs/0"] {
        let mut test = floor_test("t", &[]);
        *test.pointer_mut(path).unwrap() = json!(2);
        assert_eq!(refused(test, &all), "test t: operand 2 of 2", "{path}");
    }
    for name in ["DEADLINE", "CTS_ONLY", "general"] {
        let said = refused(floor_test("t", &["GENERAL", name]), &all);
        assert_eq!(said, format!("test t: there is no suite {name}"));
    }
    let mut test = floor_test("t", &[]);
    test["multinomial_tolerance"] = json!(0.1);
    test["main"]["inputs"] = json!([]);
    assert!(refused(test, &all).contains("random draws"));
}

#[test]
fn damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_spec(folder.path(), "floor", &[floor_test("t", &[])], &floor_blob());
    open_one(folder.path()).unwrap();
    let json = folder.path().join("V1_0/floor.json.gz");
    let whole = std::fs::read(&json).unwrap();
    std::fs::write(&json, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(open_one(folder.path()), Err(VectorError::Io { .. })));
    std::fs::write(&json, b"no gzip").unwrap();
    assert!(matches!(open_one(folder.path()), Err(VectorError::Io { .. })));
    std::fs::write(&json, &whole).unwrap();
    std::fs::remove_file(folder.path().join("V1_0/floor.bin.gz")).unwrap();
    assert!(matches!(open_one(folder.path()), Err(VectorError::Io { .. })));
}

#[test]
fn helping_additions_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let with_add = |name: &str| {
        let mut test = floor_test(name, &[]);
        let add = json!({ "type": "ADD", "inputs": [0], "outputs": [1] });
        test["main"]["operations"].as_array_mut().unwrap().push(add);
        test
    };
    let only_add = |name: &str| {
        let mut test = floor_test(name, &[]);
        test["main"]["operations"][0]["type"] = json!("ADD");
        test
    };
    let tests = [with_add("a"), with_add("a_all_inputs_as_internal"), only_add("b_as_internal")];
    write_spec(folder.path(), "floor", &tests, &floor_blob());
    let vectors = open_one(folder.path()).unwrap();
    let ops = |index: usize| vectors.tests[index].ops().into_iter().collect::<Vec<_>>();
    assert_eq!(ops(0), ["ADD", "FLOOR"]);
    assert_eq!(ops(1), ["FLOOR"]);
    assert_eq!(ops(2), ["ADD"]);
}
