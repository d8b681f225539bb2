//! Whether what was measured computed the right thing: a time means something only then.

use burst_hal::OperandType;
use burst_harness::litert::PATH as LITERT;
use burst_harness::model::{ModelReport, PathReport, Workload};

/// The path of our reference kernels, in this process.
pub const REFERENCE: &str = "reference kernels";

/// How far sums of floats may be from those of the reference kernels, which add up in another order: the root mean
/// square of the difference over that of the values around their mean. Bytes have to be equal.
const FLOATS_APART_MAX: f64 = 1e-4;

/// What is wrong with a model's outputs, in sentences: ours are those of the first path to the last bit, those of the
/// reference kernels too unless they are sums of floats, and LiteRT's are near them.
pub(super) fn wrong(workload: &Workload, report: &ModelReport) -> Vec<String> {
    let apart_max = if has_bytes(workload) { 0.0 } else { FLOATS_APART_MAX };
    let is_wrong = |path: &&PathReport| {
        let outputs = path.outputs;
        match path.path.as_str() {
            LITERT => !outputs.holds(),
            REFERENCE => !outputs.equal && outputs.relative > apart_max,
            _ => !outputs.equal,
        }
    };
    let sentence = |PathReport { path, threads, outputs, .. }: &PathReport| {
        let relative = outputs.relative;
        format!(
            "the outputs of {path} (threads: {threads}) are not those of the first path ({relative:.2e} apart)"
        )
    };
    report.paths.iter().filter(is_wrong).map(sentence).collect()
}

/// Whether anything in it is computed in bytes.
fn has_bytes(workload: &Workload) -> bool {
    let model = &workload.imported.model;
    let mut operands =
        std::iter::once(&model.main).chain(&model.referenced).flat_map(|graph| &graph.operands);
    operands.any(|operand| {
        use OperandType::{TensorQuant8Asymm, TensorQuant8AsymmSigned};
        [TensorQuant8Asymm, TensorQuant8AsymmSigned].contains(&operand.ty)
    })
}
