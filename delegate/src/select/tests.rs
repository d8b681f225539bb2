//! Selecting with devices that refuse, fail, or do not know what they want.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use burst_driver::CpuDevice;
use burst_hal::{
    Device, ErrorStatus, Failure, OperationType, PrepareOptions, PrepareResult, PreparedModel,
};

use super::*;
use crate::graph::{Allocation, Node, Tensor};

const LOGISTIC: i32 = 14;
const RELU: i32 = 19;
const TANH: i32 = 28;

/// What a device does of its own; the rest is the CPU's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It does not run LOGISTIC.
    Refuses,
    /// It runs everything, and prepares nothing that has a TANH in it.
    Fails,
    /// Of more than one operation it runs all but one, each time another.
    Wavers,
}

struct Odd {
    cpu: CpuDevice,
    manner: Manner,
    asked: AtomicUsize,
}

impl Odd {
    fn target(manner: Manner) -> Arc<Target> {
        let odd = Odd { cpu: CpuDevice::default(), manner, asked: AtomicUsize::new(0) };
        Arc::new(Target::of_device(Arc::new(odd)))
    }
}

impl Device for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &burst_hal::Model) -> Result<Vec<bool>, Failure> {
        let operations = &model.main.operations;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let runs = |(at, ty): (usize, OperationType)| match self.manner {
            Manner::Refuses => ty != OperationType::Logistic,
            Manner::Fails => true,
            Manner::Wavers => operations.len() == 1 || at != asked % operations.len(),
        };
        Ok(operations.iter().map(|one| one.ty).enumerate().map(runs).collect())
    }

    fn prepare_model(&self, model: &burst_hal::Model, options: &PrepareOptions) -> PrepareResult {
        let has_tanh = model.main.operations.iter().any(|one| one.ty == OperationType::Tanh);
        if self.manner == Manner::Fails && has_tanh {
            return Err(Failure::new(ErrorStatus::GeneralFailure, "no TANH today"));
        }
        let prepared: Arc<dyn PreparedModel> = self.cpu.prepare_model(model, options)?;
        Ok(prepared)
    }
}

/// Operators one after the other, each on the result of the one before.
fn chain(codes: &[i32]) -> Graph<'static> {
    let tensor = || Tensor {
        type_code: 1,
        shape: Some(vec![1, 4]),
        bytes: 16,
        allocation: Allocation::Planned,
        ..Tensor::default()
    };
    let node = |(number, code): (i32, &i32)| Node {
        number,
        code: *code,
        version: 1,
        inputs: vec![number],
        outputs: vec![number + 1],
        ..Node::default()
    };
    let tensors = (0..=codes.len()).map(|_| tensor()).collect();
    Graph { tensors, nodes: (0..).zip(codes).map(node).collect() }
}

/// Runs of numbers that follow each other; the last tensor of each goes out.
fn runs(nodes: &[i32]) -> Vec<Cut> {
    let parts = nodes.chunk_by(|one, next| *next == one + 1);
    let cut = |part: &[i32]| Cut { nodes: part.to_vec(), outputs: vec![part[part.len() - 1] + 1] };
    parts.map(cut).collect()
}

/// What is selected, why the others stay, and how often the runtime was asked.
fn selected(codes: &[i32], manner: Manner) -> (Selection, String, usize) {
    let folder = tempfile::tempdir().unwrap();
    let why = folder.path().join("why.txt");
    let explain = Explain::to(Some(&why)).unwrap();
    let asked = Cell::new(0);
    let preview = |nodes: &[i32]| {
        asked.set(asked.get() + 1);
        Ok(runs(nodes))
    };
    let selection = select(&chain(codes), &Odd::target(manner), &preview, &explain).unwrap();
    (selection, std::fs::read_to_string(why).unwrap(), asked.get())
}

#[test]
fn what_a_device_does_not_run_stays_and_the_runtime_is_asked_again() {
    let (selection, why, asked) = selected(&[RELU, LOGISTIC, TANH, RELU], Manner::Refuses);
    assert_eq!((selection.nodes, asked), (vec![0, 2, 3], 2));
    let mut parts: Vec<Vec<i32>> = selection.partitions.into_keys().collect();
    parts.sort();
    assert_eq!(parts, [vec![0], vec![2, 3]]);
    let want =
        "3 of 4 nodes in 2 partitions on odd\nnode 1 (LOGISTIC) stays: no device runs LOGISTIC\n";
    assert_eq!(why, want);
}

#[test]
fn a_partition_that_cannot_be_prepared_stays_as_a_whole_and_others_go() {
    let (selection, why, _) = selected(&[RELU, 7, RELU, TANH], Manner::Fails);
    assert_eq!(selection.nodes, [0]);
    assert_eq!(selection.partitions.len(), 1);
    let lines: Vec<&str> = why.lines().collect();
    assert_eq!(lines[1], "node 1 (EMBEDDING_LOOKUP) stays: no NNAPI operation computes it");
    let first = "node 2 (RELU) stays: its partition cannot be prepared: ";
    assert!(lines[2].starts_with(first) && lines[2].contains("no TANH today"), "{why}");
    let second = "node 3 (TANH) stays: its partition, with node 2, cannot be prepared";
    assert_eq!(lines[3], second);
}

#[test]
fn a_device_that_wavers_is_not_asked_for_ever() {
    let codes = [RELU; 40];
    let (selection, why, asked) = selected(&codes, Manner::Wavers);
    assert!(asked <= ROUNDS_MAX + 2, "{asked}");
    let parts: usize = selection.partitions.len();
    assert!(
        why.starts_with(&format!("{} of 40 nodes in {parts} ", selection.nodes.len())),
        "{why}"
    );
}
