//! A model's main graph in the language of Graphviz, for `dot -Tsvg`: into a text, a file, or the log.
//!
//! Operands are `d0`, `d1`, … and operations `n0`, `n1`, …, both by index. Graphs that control
//! flow refers to are not drawn; a note says how many there are.

use std::fmt::{self, Write};
use std::io;

use crate::log_tags::MODEL;
use crate::{Model, Operand, OperandLifeTime, OperandType, Operation, Subgraph};

/// Writes the main graph. The model need not be legal.
///
/// # Errors
/// Those of `out`.
pub fn dump_graph(name: &str, model: &Model, out: &mut impl Write) -> fmt::Result {
    writeln!(out, "digraph \"{}\" {{", Escaped(name))?;
    let graph = &model.main;
    for (index, operand) in graph.operands.iter().enumerate() {
        write_operand(model, index, operand, out)?;
    }
    for (index, operation) in graph.operations.iter().enumerate() {
        write_operation(index, operation, out)?;
    }
    if !model.referenced.is_empty() {
        let count = model.referenced.len();
        let text = format_args!("referenced subgraphs, not drawn: {count}");
        writeln!(out, "    note [shape=plaintext label=\"{text}\"]")?;
    }
    writeln!(out, "}}")
}

/// As [`dump_graph`], to whatever takes bytes.
///
/// ```
/// use burst_hal::{Model, write_graph};
///
/// let mut bytes = Vec::new(); // or a file, a socket, standard output
/// write_graph("empty", &Model::default(), &mut bytes)?;
/// assert_eq!(bytes, b"digraph \"empty\" {\n}\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The first one that `out` gives.
pub fn write_graph(name: &str, model: &Model, out: &mut impl io::Write) -> io::Result<()> {
    let mut bytes = Bytes { out, error: None };
    let written = dump_graph(name, model, &mut bytes);
    match (bytes.error, written) {
        (Some(error), _) => Err(error),
        // Formatting itself does not fail.
        (None, written) => written.map_err(io::Error::other),
    }
}

/// Most lines that [`log_graph`] logs of one model: whose the model is may not fill the log's disk.
pub const MAX_LOGGED_LINES: usize = 10_000;

/// Logs what [`dump_graph`] writes with the tag [`model`](crate::log_tags::MODEL), each line an event of
/// level DEBUG. Where nobody listens nothing is drawn.
///
/// Of a graph with more than [`MAX_LOGGED_LINES`] lines only these are logged, and how many more there are.
pub fn log_graph(name: &str, model: &Model) {
    if !tracing::enabled!(target: MODEL, tracing::Level::DEBUG) {
        return;
    }
    let mut lines = Lines { line: String::new(), count: 0 };
    // Formatting does not fail, and neither do lines.
    let _ = dump_graph(name, model, &mut lines);
    let left_out = lines.count.saturating_sub(MAX_LOGGED_LINES);
    if left_out > 0 {
        tracing::debug!(target: MODEL, left_out, "the graph has more lines");
    }
}

/// Text that goes to a writer of bytes, whose first error is kept.
struct Bytes<'a, W> {
    out: &'a mut W,
    error: Option<io::Error>,
}

impl<W: io::Write> Write for Bytes<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.error = Some(error);
            fmt::Error
        })
    }
}

/// Text that is logged line by line.
struct Lines {
    line: String,
    count: usize,
}

impl Write for Lines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive('\n') {
            self.line.push_str(part.trim_end_matches('\n'));
            if part.ends_with('\n') {
                if self.count < MAX_LOGGED_LINES {
                    tracing::debug!(target: MODEL, "{}", self.line);
                }
                self.count += 1;
                self.line.clear();
            }
        }
        Ok(())
    }
}

fn write_operand(
    model: &Model,
    index: usize,
    operand: &Operand,
    out: &mut impl Write,
) -> fmt::Result {
    write!(out, "    d{index} [")?;
    let role = role(&model.main, index);
    if role.is_some() {
        write!(out, "style=filled fillcolor=black fontcolor=white ")?;
    }
    write!(out, "label=\"{index}")?;
    if let Some((role, position)) = role {
        write!(out, " = {role}[{position}]")?;
    }
    match operand.lifetime {
        OperandLifeTime::ConstantCopy => write!(out, ": COPY")?,
        OperandLifeTime::ConstantReference => write!(out, ": REF")?,
        OperandLifeTime::NoValue => write!(out, ": NO")?,
        OperandLifeTime::Subgraph => write!(out, ": SUBGRAPH {}", operand.location.offset)?,
        OperandLifeTime::TemporaryVariable
        | OperandLifeTime::SubgraphInput
        | OperandLifeTime::SubgraphOutput => {}
    }
    write!(out, "\\n{}", ShortType(operand.ty))?;
    write_value(model, operand, out)?;
    write_dimensions(&operand.dimensions, out)?;
    writeln!(out, "\"]")
}

/// Which input or output of the graph an operand is, if any.
fn role(graph: &Subgraph, index: usize) -> Option<(&'static str, usize)> {
    let position_in = |list: &[u32]| list.iter().position(|i| usize::try_from(*i) == Ok(index));
    let input = position_in(&graph.input_indexes).map(|position| ("input", position));
    input.or_else(|| position_in(&graph.output_indexes).map(|position| ("output", position)))
}

/// The value of a scalar constant, where its bytes can be had.
fn write_value(model: &Model, operand: &Operand, out: &mut impl Write) -> fmt::Result {
    match (operand.ty, scalar_bytes(model, operand)) {
        (OperandType::Float32, Some([a, b, c, d])) => {
            write!(out, " = {}", f32::from_le_bytes([a, b, c, d]))
        }
        (OperandType::Int32, Some([a, b, c, d])) => {
            write!(out, " = {}", i32::from_le_bytes([a, b, c, d]))
        }
        (OperandType::Uint32, Some([a, b, c, d])) => {
            write!(out, " = {}", u32::from_le_bytes([a, b, c, d]))
        }
        (OperandType::Bool, Some([a, ..])) => write!(out, " = {}", a != 0),
        (OperandType::Float16, Some([a, b, ..])) => {
            write!(out, " = bits {:#06x}", u16::from_le_bytes([a, b]))
        }
        _ => Ok(()),
    }
}

/// The bytes of a scalar constant, zeros behind them.
fn scalar_bytes(model: &Model, operand: &Operand) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    if !operand.ty.is_scalar() {
        return None;
    }
    let length = operand.ty.element_bytes()?;
    let target = bytes.get_mut(..length)?;
    let start = operand.location.offset;
    match operand.lifetime {
        OperandLifeTime::ConstantCopy => {
            let start = usize::try_from(start).ok()?;
            target.copy_from_slice(model.operand_values.get(start..)?.get(..length)?);
        }
        OperandLifeTime::ConstantReference => {
            let pool = usize::try_from(operand.location.pool_index).ok()?;
            model.pools.get(pool)?.read(u64::from(start), target).ok()?;
        }
        _ => return None,
    }
    Some(bytes)
}

/// Sizes as `(1x224x224x3)`, with `?` for what is not known.
fn write_dimensions(dimensions: &[u32], out: &mut impl Write) -> fmt::Result {
    for (axis, size) in dimensions.iter().enumerate() {
        out.write_str(if axis == 0 { "(" } else { "x" })?;
        match size {
            0 => out.write_str("?")?,
            _ => write!(out, "{size}")?,
        }
    }
    out.write_str(if dimensions.is_empty() { "" } else { ")" })
}

/// The box of an operation and its edges; where there are several, each with its position.
fn write_operation(index: usize, operation: &Operation, out: &mut impl Write) -> fmt::Result {
    let (inputs, outputs) = (operation.inputs.len(), operation.outputs.len());
    let ordering = match inputs.max(outputs) {
        0 | 1 => "",
        most if most == inputs => " ordering=in",
        _ => " ordering=out",
    };
    writeln!(out, "    n{index} [shape=box{ordering} label=\"{index}: {}\"]", operation.ty)?;
    for (position, operand) in operation.inputs.iter().enumerate() {
        write!(out, "    d{operand} -> n{index}")?;
        write_position(position, inputs, out)?;
    }
    for (position, operand) in operation.outputs.iter().enumerate() {
        write!(out, "    n{index} -> d{operand}")?;
        write_position(position, outputs, out)?;
    }
    Ok(())
}

fn write_position(position: usize, count: usize, out: &mut impl Write) -> fmt::Result {
    match count {
        1 => writeln!(out),
        _ => writeln!(out, " [label={position}]"),
    }
}

/// An operand type in a few letters: `T` for tensor, then what its elements are.
struct ShortType(OperandType);

impl fmt::Display for ShortType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            OperandType::Float32 => "F32",
            OperandType::Int32 => "I32",
            OperandType::Uint32 => "U32",
            OperandType::TensorFloat32 => "TF32",
            OperandType::TensorInt32 => "TI32",
            OperandType::TensorQuant8Asymm => "TQ8A",
            OperandType::TensorQuant16Symm => "TQ16S",
            OperandType::TensorFloat16 => "TF16",
            OperandType::TensorBool8 => "TB8",
            OperandType::Float16 => "F16",
            OperandType::TensorQuant8SymmPerChannel => "TQ8SC",
            OperandType::TensorQuant16Asymm => "TQ16A",
            OperandType::TensorQuant8Symm => "TQ8S",
            OperandType::TensorQuant8AsymmSigned => "TQ8AS",
            OperandType::TensorOemByte => "TOEMB",
            OperandType::Bool
            | OperandType::Subgraph
            | OperandType::Oem
            | OperandType::Extension(_)
            | OperandType::Unknown(_) => return write!(f, "{}", self.0),
        })
    }
}

/// Text inside of a quoted Graphviz string.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() => f.write_str(" ")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{DataLocation, HeapMemory, ModelBuilder, OperationType, OutputSpec};

    fn dump(name: &str, model: &Model) -> String {
        let mut text = String::new();
        dump_graph(name, model, &mut text).unwrap();
        text
    }

    #[test]
    fn a_graph_is_drawn_with_values_positions_and_roles() {
        let mut b = ModelBuilder::new();
        let x = b.input(OperandType::TensorFloat32, &[0, 3]);
        let weights = b.constant_f32(&[3], &[1.0, 2.0, 3.0]);
        let none = b.scalar_i32(-7);
        let sum = b.result_of(OperationType::Add, &[x, weights, none], OutputSpec::f32(&[0, 3]));
        let floor = b.result_of(OperationType::Floor, &[sum], OutputSpec::f32(&[0, 3]));
        b.output(floor);
        let text = dump("a \"model\"\\\n", &b.build().unwrap());
        let want = r#"digraph "a \"model\"\\\n" {
    d0 [style=filled fillcolor=black fontcolor=white label="0 = input[0]\nTF32(?x3)"]
    d1 [label="1: COPY\nTF32(3)"]
    d2 [label="2: COPY\nI32 = -7"]
    d3 [label="3\nTF32(?x3)"]
    d4 [style=filled fillcolor=black fontcolor=white label="4 = output[0]\nTF32(?x3)"]
    n0 [shape=box ordering=in label="0: ADD"]
    d0 -> n0 [label=0]
    d1 -> n0 [label=1]
    d2 -> n0 [label=2]
    n0 -> d3
    n1 [shape=box label="1: FLOOR"]
    d3 -> n1
    n1 -> d4
}
"#;
        assert_eq!(text, want);
    }

    #[test]
    fn a_writer_of_bytes_gets_the_same_and_its_error_is_told() {
        let mut b = ModelBuilder::new();
        b.scalar_i32(3);
        let model = b.build_unvalidated().unwrap();
        let mut bytes = Vec::new();
        write_graph("one", &model, &mut bytes).unwrap();
        assert_eq!(bytes, dump("one", &model).as_bytes());
        // A writer that takes less than there is.
        let mut short = [0; 12];
        let error = write_graph("one", &model, &mut short.as_mut_slice()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WriteZero);
    }

    #[test]
    fn the_log_gets_each_line_as_an_event_of_its_tag() {
        let mut b = ModelBuilder::new();
        let x = b.input(OperandType::TensorFloat32, &[1]);
        let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[1]));
        b.output(y);
        let model = b.build().unwrap();
        let events = crate::test_log::events(|| log_graph("a\nb", &model));
        let text = dump("a\nb", &model);
        let want: Vec<String> =
            text.lines().map(|line| format!("DEBUG nn::model {line}")).collect();
        assert_eq!(events, want);
    }

    #[test]
    fn a_graph_of_many_lines_is_cut_and_that_is_said() {
        let mut model = Model::default();
        let operand = Operand::new(OperandType::Float32, OperandLifeTime::TemporaryVariable);
        // With the first line and the last there are two more.
        model.main.operands = vec![operand; MAX_LOGGED_LINES + 3];
        let events = crate::test_log::events(|| log_graph("many", &model));
        assert_eq!(events.len(), MAX_LOGGED_LINES + 1);
        let last = "DEBUG nn::model the graph has more lines left_out=5";
        assert_eq!(events.last().map(String::as_str), Some(last));
    }

    #[test]
    fn scalars_show_their_values_wherever_they_lie() {
        let mut b = ModelBuilder::new();
        b.scalar_f32(0.5);
        b.scalar_u32(4_000_000_000);
        b.scalar_bool(true);
        b.scalar_f16_bits(0x3c00);
        let pool = b.pool(Arc::new(HeapMemory::new(vec![9, 9, 1, 1, 0, 0])));
        let location = DataLocation { pool_index: pool, offset: 2, length: 4 };
        b.constant_in_pool(OutputSpec::new(OperandType::Int32, &[]), location);
        b.omitted(OperandType::TensorOemByte);
        let mut model = b.build_unvalidated().unwrap();
        let text = dump("scalars", &model);
        let labels = ["0: COPY\\nF32 = 0.5", "1: COPY\\nU32 = 4000000000", "2: COPY\\nBOOL = true"];
        let more = ["3: COPY\\nF16 = bits 0x3c00", "4: REF\\nI32 = 257", "5: NO\\nTOEMB"];
        for label in labels.into_iter().chain(more) {
            assert!(text.contains(&format!("[label=\"{label}\"]")), "{label} in {text}");
        }
        // A constant without bytes is drawn without its value; nothing fails.
        model.main.operands[0].location.offset = u32::MAX;
        model.main.operands[4].location.pool_index = 9;
        let text = dump("scalars", &model);
        assert!(text.contains("[label=\"0: COPY\\nF32\"]"), "{text}");
        assert!(text.contains("[label=\"4: REF\\nI32\"]"), "{text}");
    }

    #[test]
    fn subgraphs_are_named_but_not_drawn() {
        let mut b = ModelBuilder::new();
        let branch = b.referenced(|b| {
            let x = b.input(OperandType::TensorFloat32, &[1]);
            let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[1]));
            b.output(y);
        });
        let condition = b.input(OperandType::TensorBool8, &[1]);
        let x = b.input(OperandType::TensorFloat32, &[1]);
        let (then, otherwise) = (b.subgraph(branch), b.subgraph(branch));
        let inputs = [condition, then, otherwise, x];
        let y = b.result_of(OperationType::If, &inputs, OutputSpec::f32(&[1]));
        b.output(y);
        let text = dump("if", &b.build().unwrap());
        assert!(text.contains("d2 [label=\"2: SUBGRAPH 0\\nSUBGRAPH\"]"), "{text}");
        assert!(text.contains("label=\"referenced subgraphs, not drawn: 1\""), "{text}");
        assert!(!text.contains("FLOOR"), "{text}");
    }

    #[test]
    fn several_outputs_are_ordered_too() {
        let mut b = ModelBuilder::new();
        let x = b.input(OperandType::TensorFloat32, &[2]);
        let parts = [OutputSpec::f32(&[1]), OutputSpec::f32(&[1])];
        let parts = b.operation(OperationType::Split, &[x], &parts);
        b.output(parts[1]);
        let text = dump("split", &b.build_unvalidated().unwrap());
        assert!(text.contains("n0 [shape=box ordering=out label=\"0: SPLIT\"]"), "{text}");
        assert!(text.contains("    d0 -> n0\n"), "{text}");
        assert!(text.contains("    n0 -> d2 [label=1]\n"), "{text}");
    }
}
