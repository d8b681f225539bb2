//! Small models that ask for far more than they look like.

use std::sync::Arc;

use burst_client::ShmMemory;
use burst_hal::validate::MAX_OPERANDS;
use burst_hal::{
    DataLocation, HeapMemory, Model, ModelBuilder, OperandLifeTime, OperandType, OperationType,
    OutputSpec, Pool,
};
use burst_shm::Memory;

/// No activation.
const NONE: i32 = 0;

fn one() -> OutputSpec {
    OutputSpec::f32(&[1])
}

fn truth() -> OutputSpec {
    OutputSpec::new(OperandType::TensorBool8, &[1])
}

/// Any shape of this rank.
fn open_shape(rank: usize) -> OutputSpec {
    OutputSpec::f32(&vec![0; rank])
}

/// The model, which may be none that is legal.
fn built(b: ModelBuilder) -> Model {
    b.build_unvalidated().expect("few constants")
}

/// One number that is repeated until there are so many; all of them together give one number again, so that
/// nobody has to have room for the result.
pub(crate) fn repeated(times: &[i32], says_how_much: bool) -> Model {
    let mut b = ModelBuilder::new();
    let rank = times.len();
    let input = b.input(OperandType::TensorFloat32, &vec![1; rank]);
    let multiples = b.constant_i32(&[u32::try_from(rank).expect("few")], times);
    let wide: Vec<u32> = times.iter().map(|times| times.cast_unsigned()).collect();
    let wide = if says_how_much { OutputSpec::f32(&wide) } else { open_shape(rank) };
    let tiled = b.result_of(OperationType::Tile, &[input, multiples], wide);
    let largest = largest(&mut b, tiled, rank);
    b.output(largest);
    built(b)
}

/// The largest number of a tensor.
fn largest(b: &mut ModelBuilder, of: u32, rank: usize) -> u32 {
    let axes: Vec<i32> = (0..rank).map(|axis| i32::try_from(axis).expect("few")).collect();
    let axes = b.constant_i32(&[u32::try_from(rank).expect("few")], &axes);
    let keep = b.scalar_bool(false);
    b.result_of(OperationType::ReduceMax, &[of, axes, keep], one())
}

/// The same where a request says how often it is repeated.
pub(crate) fn repeated_as_asked() -> Model {
    let mut b = ModelBuilder::new();
    let input = b.input(OperandType::TensorFloat32, &[1]);
    let multiples = b.input(OperandType::TensorInt32, &[1]);
    let tiled = b.result_of(OperationType::Tile, &[input, multiples], open_shape(1));
    let largest = largest(&mut b, tiled, 1);
    b.output(largest);
    built(b)
}

/// Two inputs of this shape, added.
pub(crate) fn added(dimensions: &[u32]) -> Model {
    let mut b = ModelBuilder::new();
    let one = b.input(OperandType::TensorFloat32, dimensions);
    let other = b.input(OperandType::TensorFloat32, dimensions);
    let none = b.scalar_i32(NONE);
    let spec = OutputSpec::f32(dimensions);
    let sum = b.result_of(OperationType::Add, &[one, other, none], spec);
    b.output(sum);
    built(b)
}

/// A column and a row of this length that become a square.
pub(crate) fn broadcast(length: u32) -> Model {
    let mut b = ModelBuilder::new();
    let column = b.input(OperandType::TensorFloat32, &[length, 1]);
    let row = b.input(OperandType::TensorFloat32, &[1, length]);
    let none = b.scalar_i32(NONE);
    let square = b.result_of(OperationType::Add, &[column, row, none], open_shape(2));
    let largest = largest(&mut b, square, 2);
    b.output(largest);
    built(b)
}

/// A constant that doubles so many times, nothing of which depends on an input.
pub(crate) fn doubled(times: u32) -> Model {
    let mut b = ModelBuilder::new();
    let none = b.scalar_i32(NONE);
    let axis = b.scalar_i32(0);
    let input = b.input(OperandType::TensorFloat32, &[1]);
    let mut constant = b.constant_f32(&[1], &[1.0]);
    for power in 1..=times {
        let spec = OutputSpec::f32(&[1 << power]);
        constant = b.result_of(OperationType::Concatenation, &[constant, constant, axis], spec);
    }
    let largest = largest(&mut b, constant, 1);
    let sum = b.result_of(OperationType::Add, &[input, largest, none], one());
    b.output(sum);
    built(b)
}

/// More operands than a model may have, divided among two graphs: each alone has few enough for a message.
pub(crate) fn too_many_operands() -> Model {
    let half = |graph: &mut ModelBuilder| {
        let input = graph.input_of(one());
        for _ in 0..MAX_OPERANDS / 2 {
            graph.omitted(OperandType::TensorFloat32);
        }
        input
    };
    let mut b = ModelBuilder::new();
    let other = b.referenced(|graph| {
        let x = half(graph);
        let y = negated(graph, x);
        graph.output(y);
    });
    let x = half(&mut b);
    let output = chosen(&mut b, other, 1, x);
    b.output(output);
    built(b)
}

/// The same in a single graph.
pub(crate) fn too_many_operands_of_one_graph() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input_of(one());
    for _ in 0..MAX_OPERANDS {
        b.omitted(OperandType::TensorFloat32);
    }
    let y = negated(&mut b, x);
    b.output(y);
    built(b)
}

/// A sum of so many constants, each of them in a pool of its own.
pub(crate) fn constants_in_pools_of_their_own(pools: usize) -> Model {
    let mut b = ModelBuilder::new();
    let none = b.scalar_i32(NONE);
    let mut sum = b.input_of(one());
    for _ in 0..pools {
        let pool_index = b.pool(Arc::new(HeapMemory::new(vec![0; 4])));
        let location = DataLocation { pool_index, offset: 0, length: 4 };
        let constant = b.constant_in_pool(one(), location);
        sum = b.result_of(OperationType::Add, &[sum, constant, none], one());
    }
    b.output(sum);
    built(b)
}

/// What a loop does in each round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// Next to nothing.
    Little,
    /// A loop of its own that does not end either.
    Loop,
    /// Its value becomes twice as long.
    Grows,
}

/// A loop whose condition always holds.
pub(crate) fn endless(round: Round) -> Model {
    let mut b = ModelBuilder::new();
    let spec = state(round);
    let x = match round {
        Round::Grows => b.input(OperandType::TensorFloat32, &[1]),
        _ => b.input_of(spec.clone()),
    };
    let y = endless_loop(&mut b, round, x);
    b.output(y);
    built(b)
}

fn state(round: Round) -> OutputSpec {
    if round == Round::Grows { open_shape(1) } else { one() }
}

fn endless_loop(b: &mut ModelBuilder, round: Round, x: u32) -> u32 {
    let spec = state(round);
    let condition = b.referenced(|graph| {
        graph.input_of(spec.clone());
        let one = graph.constant_f32(&[1], &[1.0]);
        let holds = graph.result_of(OperationType::Equal, &[one, one], truth());
        graph.output(holds);
    });
    let inner = (round == Round::Loop).then(|| inner_graphs(b));
    let body = b.referenced(|graph| {
        let x = graph.input_of(spec.clone());
        let y = match inner {
            Some([condition, body]) => {
                let (condition, body) = (graph.subgraph(condition), graph.subgraph(body));
                graph.result_of(OperationType::While, &[condition, body, x], one())
            }
            None if round == Round::Grows => {
                let axis = graph.scalar_i32(0);
                graph.result_of(OperationType::Concatenation, &[x, x, axis], spec.clone())
            }
            None => negated(graph, x),
        };
        graph.output(y);
    });
    let (condition, body) = (b.subgraph(condition), b.subgraph(body));
    b.result_of(OperationType::While, &[condition, body, x], spec)
}

fn negated(graph: &mut ModelBuilder, x: u32) -> u32 {
    graph.result_of(OperationType::Neg, &[x], one())
}

/// Condition and body of a loop that does not end.
fn inner_graphs(b: &mut ModelBuilder) -> [u32; 2] {
    let condition = b.referenced(|graph| {
        let x = graph.input_of(one());
        let holds = graph.result_of(OperationType::Equal, &[x, x], truth());
        graph.output(holds);
    });
    let body = b.referenced(|graph| {
        let x = graph.input_of(one());
        let y = negated(graph, x);
        graph.output(y);
    });
    [condition, body]
}

/// Graphs so deep in each other, the main one counted, with so many IFs in each: the innermost one is executed as
/// often as there are ways to it.
pub(crate) fn nested(levels: usize, ifs: usize) -> Model {
    let mut b = ModelBuilder::new();
    let mut graph = b.referenced(|graph| {
        let x = graph.input_of(one());
        let y = negated(graph, x);
        graph.output(y);
    });
    for _ in 2..levels {
        graph = b.referenced(|outer| {
            let x = outer.input_of(one());
            let y = chosen(outer, graph, ifs, x);
            outer.output(y);
        });
    }
    let x = b.input_of(one());
    let y = chosen(&mut b, graph, ifs, x);
    b.output(y);
    built(b)
}

fn chosen(b: &mut ModelBuilder, graph: u32, ifs: usize, x: u32) -> u32 {
    let condition = b.constant_bool(&[1], &[true]);
    let (then, otherwise) = (b.subgraph(graph), b.subgraph(graph));
    (0..ifs).fold(x, |x, _| b.result_of(OperationType::If, &[condition, then, otherwise, x], one()))
}

/// Two graphs each of which calls the other.
pub(crate) fn recursive() -> Model {
    let mut model = nested(4, 1);
    // The innermost graph is the first; the one around it calls it, and is called by the next.
    let caller = model.referenced[1].clone();
    model.referenced[0] = caller;
    for operand in &mut model.referenced[0].operands {
        if operand.lifetime == OperandLifeTime::Subgraph {
            operand.location.offset = 1;
        }
    }
    model
}

/// A layer whose weights are the first `length` bytes from `offset` on of a pool.
pub(crate) fn layer_of(pool: Pool, offset: u32, length: u32) -> Model {
    const COLUMNS: u32 = 1 << 10;
    let mut b = ModelBuilder::new();
    let pool_index = b.pool(pool);
    let rows = length / 4 / COLUMNS;
    let input = b.input(OperandType::TensorFloat32, &[1, COLUMNS]);
    let location = DataLocation { pool_index, offset, length };
    let weights = b.constant_in_pool(OutputSpec::f32(&[rows, COLUMNS]), location);
    let bias = b.constant_f32(&[rows], &vec![0.0; usize::try_from(rows).expect("few")]);
    let none = b.scalar_i32(NONE);
    let spec = OutputSpec::f32(&[1, rows]);
    let layer = b.result_of(OperationType::FullyConnected, &[input, weights, bias, none], spec);
    let largest = largest(&mut b, layer, 2);
    b.output(largest);
    built(b)
}

/// Constants that all name the same bytes of a pool, together more than a model may have.
pub(crate) fn same_bytes_again_and_again(pool: Pool, length: u32, times: usize) -> Model {
    let mut b = ModelBuilder::new();
    let pool_index = b.pool(pool);
    let input = b.input(OperandType::TensorFloat32, &[1]);
    let none = b.scalar_i32(NONE);
    let location = DataLocation { pool_index, offset: 0, length };
    let spec = OutputSpec::f32(&[length / 4]);
    let mut sum = input;
    for _ in 0..times {
        let constant = b.constant_in_pool(spec.clone(), location);
        sum = b.result_of(OperationType::Add, &[sum, constant, none], spec.clone());
    }
    let largest = largest(&mut b, sum, 1);
    b.output(largest);
    built(b)
}

/// A memory of so many bytes that nobody has written: it takes no room. Sealed against writing or not.
pub(crate) fn sparse(bytes: u64, sealed: bool) -> Pool {
    let mut memory =
        Memory::create("sparse", usize::try_from(bytes).expect("64 bits")).expect("a memory");
    if sealed {
        memory.seal_write().expect("nobody maps it");
    }
    Arc::new(ShmMemory::open(memory.into(), bytes).expect("a pool"))
}

/// The same as a file on a disk.
pub(crate) fn sparse_file(bytes: u64) -> Pool {
    let file = tempfile::tempfile().expect("a file");
    file.set_len(bytes).expect("a file system with sparse files");
    Arc::new(ShmMemory::open(file.into(), bytes).expect("a pool"))
}

/// A model of a few bytes that becomes constants of this many.
pub(crate) fn kept(bytes: u32) -> Model {
    let mut b = ModelBuilder::new();
    let none = b.scalar_i32(NONE);
    let elements = bytes / 4;
    let input = b.input(OperandType::TensorFloat32, &[1]);
    let length = b.constant_i32(&[1], &[elements.cast_signed()]);
    let value = b.scalar_f32(1.0);
    let spec = OutputSpec::f32(&[elements]);
    let constant = b.result_of(OperationType::Fill, &[length, value], spec.clone());
    let sum = b.result_of(OperationType::Add, &[input, constant, none], spec);
    let largest = largest(&mut b, sum, 1);
    b.output(largest);
    built(b)
}
