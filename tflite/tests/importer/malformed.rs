//! Files that are no models, damaged, or wrong: each gives one clear error, never a panic.

use burst_tflite::{ImportError, Outcome, Refusal, import, inspect};

use crate::support::*;

fn refused(file: &File) -> ImportError {
    import(&file.write()).expect_err("an error")
}

#[test]
fn the_sample_itself_is_right() {
    let imported = import(&sample().write()).expect("the sample");
    assert_valid(&imported.model, "sample");
    assert_eq!(imported.verdicts[3].outcome, Outcome::Folded);
}

#[test]
fn what_is_no_model_is_said_so() {
    let mut wrong_mark = sample().write();
    wrong_mark[4..8].copy_from_slice(b"JFIF");
    for (bytes, want) in [
        (Vec::new(), ImportError::TooShort { bytes: 0 }),
        (b"TFL3".to_vec(), ImportError::TooShort { bytes: 4 }),
        (wrong_mark, ImportError::NotAModel { found: "JFIF".to_owned() }),
        (
            b"\x89PNG\r\n\x1a\n and more".to_vec(),
            ImportError::NotAModel { found: "\\r\\n\\x1a\\n".to_owned() },
        ),
    ] {
        assert_eq!(import(&bytes).expect_err("no model"), want);
    }
}

#[test]
fn a_file_cut_anywhere_is_refused_or_only_lost_padding() {
    let whole = sample().write();
    let good = import(&whole).expect("the sample");
    for length in 0..whole.len() {
        match import(&whole[..length]) {
            Err(error) => assert!(!error.to_string().contains('\n'), "{length}: {error}"),
            Ok(imported) => assert_eq!(imported.model.main, good.model.main, "{length}"),
        }
    }
}

#[test]
fn a_damaged_file_says_where() {
    let whole = sample().write();
    let message = import(&whole[..whole.len() / 2]).expect_err("damage").to_string();
    assert!(message.starts_with("cut short or damaged model: "), "{message}");
    assert!(message.contains("outside the file"), "{message}");
}

#[test]
fn no_single_wrong_byte_makes_it_panic() {
    let good = sample().write();
    for at in 0..good.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, good[at] ^ 1, good[at].wrapping_add(4)] {
            let mut bad = good.clone();
            bad[at] = value;
            let _ = inspect(&bad);
            if let Ok(imported) = import(&bad) {
                assert_valid(&imported.model, "one wrong byte");
            }
        }
    }
}

#[test]
fn no_many_wrong_bytes_make_it_panic() {
    let good = sample().write();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..30_000 {
        let mut bad = good.clone();
        for _ in 0..1 + random() % 8 {
            let at = usize::try_from(random() % good.len() as u64).expect("it fits");
            bad[at] = random().to_le_bytes()[0];
        }
        let _ = inspect(&bad);
        if let Ok(imported) = import(&bad) {
            assert_valid(&imported.model, "many wrong bytes");
        }
    }
}

#[test]
fn only_schema_3_with_one_graph() {
    let mut file = sample();
    file.version = 2;
    assert_eq!(refused(&file), ImportError::SchemaVersion { found: 2 });
    for subgraphs in [0, 2] {
        let mut file = sample();
        file.subgraphs = subgraphs;
        assert_eq!(refused(&file), ImportError::Subgraphs { found: subgraphs });
    }
}

#[test]
fn indexes_that_lead_nowhere_are_named() {
    type Spoil = fn(&mut File);
    let cases: [(&str, Spoil); 8] = [
        ("input tensor 11 of operator 0", |f| f.operators[0].inputs[1] = 11),
        ("input tensor -2 of operator 0", |f| f.operators[0].inputs[1] = -2),
        ("output tensor 99 of operator 5", |f| f.operators[5].outputs[0] = 99),
        ("output tensor -1 of operator 5", |f| f.operators[5].outputs[0] = -1),
        ("code 6 of operator 0", |f| f.first_code_index = Some(6)),
        ("buffer 77 of tensor 1 (filter)", |f| f.tensors[1].buffer = Some(77)),
        ("input tensor 11 of graph 0", |f| f.inputs[0] = 11),
        ("output tensor -1 of graph 0", |f| f.outputs[0] = -1),
    ];
    for (what, spoil) in cases {
        let mut file = sample();
        spoil(&mut file);
        let error = refused(&file);
        assert!(matches!(error, ImportError::IndexOutOfRange { .. }), "{what}: {error}");
        assert!(error.to_string().starts_with(what), "{what}: {error}");
    }
}

#[test]
fn constants_must_have_the_bytes_that_their_shape_needs() {
    let mut file = sample();
    file.tensors[2].data = Some(vec![0; 11]);
    let error = refused(&file);
    assert!(matches!(error, ImportError::ConstantSize { found: 11, needed: 12, .. }), "{error}");
    let mut file = sample();
    file.tensors[1].shape = vec![i32::MAX; 8];
    assert!(matches!(refused(&file), ImportError::ConstantSize { needed: u64::MAX, .. }));
    file.tensors[1].shape = vec![1; 9];
    assert!(matches!(refused(&file), ImportError::TooMany { found: 9, limit: 8, .. }));
    file.tensors[1].shape = vec![3, -3, 3, 2];
    assert!(matches!(refused(&file), ImportError::NegativeSize { axis: 1, size: -3, .. }));
}

#[test]
fn constants_behind_the_flatbuffer_are_found_and_checked() {
    let inside = import(&sample().write()).expect("the sample");
    let mut file = sample();
    file.external = true;
    let outside = import(&file.write()).expect("external buffers");
    assert_eq!(inside.model.main, outside.model.main);
    assert_eq!(&inside.model.operand_values[..], &outside.model.operand_values[..]);
    for shift in [1 << 20, u64::MAX / 2] {
        file.external_shift = shift;
        let error = refused(&file);
        assert!(matches!(error, ImportError::BufferOutOfFile { .. }), "{shift}: {error}");
    }
}

#[test]
fn values_are_written_once_and_before_they_are_read() {
    let mut file = sample();
    file.operators.swap(0, 1);
    assert!(matches!(refused(&file), ImportError::NotInOrder { .. }));
    let mut file = sample();
    file.operators[1].outputs[0] = 3;
    assert!(matches!(refused(&file), ImportError::WrittenTwice { .. }));
    let mut file = sample();
    file.operators[5].outputs[0] = 1;
    assert!(matches!(refused(&file), ImportError::WrittenTwice { .. }));
    for (inputs, outputs) in
        [(&[0, 0][..], &[10][..]), (&[0, 1], &[10]), (&[0], &[10, 10]), (&[0], &[0]), (&[0], &[1])]
    {
        let mut file = sample();
        (file.inputs, file.outputs) = (inputs.to_vec(), outputs.to_vec());
        let error = refused(&file);
        assert!(matches!(error, ImportError::Boundary { .. }), "{inputs:?} {outputs:?}: {error}");
    }
}

#[test]
fn operators_that_cannot_be_mapped_are_named_with_reason() {
    let mut file = sample();
    file.operators[4].code = 131; // RFFT2D
    file.operators[5].custom = Some("Mystery");
    let bytes = file.write();
    let error = import(&bytes).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "operator 4 (RFFT2D) cannot be mapped: no NNAPI operation computes it (and 1 more operator)"
    );
    let inspection = inspect(&bytes).expect("a verdict for each");
    assert_eq!(inspection.verdicts.len(), 6);
    assert_eq!(inspection.verdicts[5].operator, "Mystery");
    assert_eq!(inspection.verdicts[5].outcome, Outcome::Refused(Refusal::NoNnapiForm));
    assert!(!inspection.verdicts[0].outcome.is_refused());

    file.operators[4].code = 5000;
    let error = refused(&file);
    assert!(error.to_string().starts_with("operator 4 (operator code 5000)"), "{error}");
}

#[test]
fn options_of_another_operator_are_refused() {
    let mut file = sample();
    file.operators[0].options = Some((5, vec![]));
    let error = refused(&file);
    assert!(
        matches!(error, ImportError::Refused { reason: Refusal::OptionsKind { found: 5 }, .. }),
        "{error}"
    );
    // Without options a convolution has stride 0.
    file.operators[0].options = None;
    let error = refused(&file);
    assert!(error.to_string().contains("option stride_w is 0"), "{error}");
}

#[test]
fn a_small_file_cannot_ask_for_much_memory() {
    // Many names for one graph: every reference would be read again.
    let mut file = sample();
    file.subgraphs = 100_000;
    let error = refused(&file);
    assert!(error.to_string().contains("shared so often"), "{error}");
}

#[test]
fn names_from_a_file_are_shown_in_one_line_that_no_terminal_obeys() {
    let mut file = sample();
    file.tensors[1].name = "fil\x1b[31mter\n".into();
    file.tensors[1].data = Some(vec![0; 3]);
    let text = refused(&file).to_string();
    assert!(text.contains("(fil\\u{1b}[31mter\\n)"), "{text}");
    assert!(!text.contains(char::is_control), "{text}");

    let mut file = sample();
    file.operators[5].custom = Some("My\x07stery\r");
    let inspection = inspect(&file.write()).expect("a verdict for each");
    assert_eq!(inspection.verdicts[5].operator, "My\\u{7}stery\\r");

    let mut file = sample();
    file.tensors[1].name = "é".repeat(100_000).into();
    file.tensors[1].data = Some(vec![0; 3]);
    let text = refused(&file).to_string();
    assert!(text.contains("éé…)") && text.chars().count() < 400, "{} bytes", text.len());
}
