//! For which types of its first input each NNAPI operation is defined.

use burst_hal::OperandType::{
    self, TensorBool8 as B8, TensorFloat16 as F16, TensorFloat32 as F32, TensorInt32 as I32,
    TensorQuant8Asymm as U8, TensorQuant8AsymmSigned as S8, TensorQuant8Symm as SY8,
    TensorQuant8SymmPerChannel as PC8,
};
use burst_hal::OperationType::{self, *};

/// The types that the first input of this operation may have, where the importer uses it.
pub(crate) fn main_types(operation: OperationType) -> &'static [OperandType] {
    match operation {
        Add | Sub | Mul => &[F32, U8, F16, S8, I32],
        Div => &[F32, F16, I32],
        Abs | Neg => &[F32, F16, I32],
        Exp
        | Log
        | Sqrt
        | Rsqrt
        | Sin
        | Floor
        | Elu
        | Pow
        | LogSoftmax
        | ReduceSum
        | ReduceProd
        | Svdf
        | Rnn
        | UnidirectionalSequenceLstm
        | DetectionPostprocessing
        | Quantize => &[F32, F16],
        AveragePool2d
        | MaxPool2d
        | Concatenation
        | Conv2d
        | DepthwiseConv2d
        | GroupedConv2d
        | DepthToSpace
        | SpaceToDepth
        | FullyConnected
        | Logistic
        | Relu
        | Relu1
        | Relu6
        | Reshape
        | ResizeBilinear
        | ResizeNearestNeighbor
        | Softmax
        | Tanh
        | Mean
        | Pad
        | PadV2
        | Squeeze
        | StridedSlice
        | Transpose
        | Prelu
        | HardSwish
        | L2Normalization
        | ReduceMax
        | ReduceMin
        | BatchToSpaceNd
        | SpaceToBatchNd => &[F32, U8, F16, S8],
        L2Pool2d => &[F32, F16],
        Argmax | Argmin | Gather | Split | Minimum | Maximum | Slice | Tile | ExpandDims => {
            &[F32, U8, F16, I32, S8]
        }
        Equal | NotEqual => &[B8, F16, F32, I32, U8, S8],
        Less | LessEqual | Greater | GreaterEqual => &[B8, F16, F32, I32, U8, S8],
        LogicalAnd | LogicalOr | LogicalNot | ReduceAll | ReduceAny => &[B8],
        Cast => &[F32, F16, I32, U8, B8, S8],
        Dequantize => &[U8, SY8, PC8, S8],
        QuantizedLstm => &[S8],
        _ => &[],
    }
}

/// How many of the first inputs decide the first size of the output: it is the largest of theirs,
/// where they have the output's rank. 0 where there is no such rule.
pub(crate) fn batch_inputs(operation: OperationType) -> usize {
    match operation {
        Add | Sub | Mul | Div | Minimum | Maximum => 2,
        Relu
        | Relu1
        | Relu6
        | Logistic
        | Tanh
        | Softmax
        | DepthToSpace
        | SpaceToDepth
        | ResizeBilinear
        | ResizeNearestNeighbor
        | AveragePool2d
        | MaxPool2d
        | L2Pool2d
        | HardSwish
        | Elu
        | Abs
        | Neg
        | Exp
        | Log
        | Sqrt
        | Rsqrt
        | Sin
        | Floor
        | Conv2d
        | DepthwiseConv2d
        | GroupedConv2d => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    /// The specification's list, where it lies beside the repository.
    fn specification() -> Option<serde_json::Value> {
        let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared");
        let folder = std::env::var_os("BURST_SHARED").map_or(beside, PathBuf::from);
        let text = std::fs::read(folder.join("spec/operations.json")).ok()?;
        Some(serde_json::from_slice(&text).expect("JSON"))
    }

    #[test]
    fn types_are_those_of_the_specification() {
        let Some(specification) = specification() else {
            println!(
                "types_are_those_of_the_specification: ignored, no ../shared/spec/operations.json"
            );
            return;
        };
        for row in specification.as_array().expect("a list") {
            let operation = OperationType::from_name(row["name"].as_str().expect("a name"));
            let operation = operation.expect("a known operation");
            let ours: BTreeSet<_> = main_types(operation).iter().copied().collect();
            if ours.is_empty() {
                continue;
            }
            let types = &row["inputs"][0]["types"];
            let theirs: BTreeSet<_> = types
                .as_object()
                .expect("types by version")
                .values()
                .flat_map(|list| list.as_array().expect("a list"))
                .filter_map(|name| OperandType::from_name(name.as_str().expect("a name")))
                .collect();
            let unknown: Vec<_> = ours.difference(&theirs).collect();
            assert!(unknown.is_empty(), "{operation}: {unknown:?} are not in the specification");
            // CAST of further types is the identity, which no file has.
            if operation != OperationType::Cast {
                assert_eq!(ours, theirs, "{operation}");
            }
        }
    }
}
