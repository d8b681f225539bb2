//! Models that a model refers to, as its referenced graphs.

use std::sync::Arc;

use burst_hal::validate::MAX_SUBGRAPHS;
use burst_hal::{
    DataLocation, ExtensionCode, Model, OperandLifeTime, OperandType, OperationType, Subgraph,
};

use super::constants::pool_index;
use super::extensions::Extensions;
use crate::error::{Error, Result};

/// Constants keep their alignment when they move.
const ALIGNMENT: usize = 64;

/// Adds the models that operands refer to, each once, with everything that they bring: constants, pools,
/// extensions and graphs of their own.
///
/// # Errors
/// BAD_DATA for too many graphs, too many extensions, or more constants than 32 bits count.
pub(super) fn add(
    model: &mut Model,
    extensions: &mut Extensions,
    references: Vec<(u32, Arc<Model>)>,
) -> Result<()> {
    let mut added: Vec<(Arc<Model>, u32)> = Vec::new();
    for (index, other) in references {
        let known = added.iter().find(|(known, _)| Arc::ptr_eq(known, &other));
        let graph = match known {
            Some((_, graph)) => *graph,
            None => {
                let graph = append(model, extensions, &other)?;
                added.push((other, graph));
                graph
            }
        };
        let operand = usize::try_from(index).ok().and_then(|at| model.main.operands.get_mut(at));
        if let Some(operand) = operand {
            operand.location = DataLocation { offset: graph, ..DataLocation::default() };
        }
    }
    Ok(())
}

/// How the numbers of another model change.
struct Shift<'a> {
    values: u32,
    /// By the other's index.
    pools: Vec<u32>,
    graphs: u32,
    other: &'a [(String, u16)],
}

/// Adds one model: the index of its main graph.
fn append(model: &mut Model, extensions: &mut Extensions, other: &Model) -> Result<u32> {
    let first = model.referenced.len();
    if first + 1 + other.referenced.len() > MAX_SUBGRAPHS {
        return Err(Error::bad_data(format!("more than {MAX_SUBGRAPHS} referenced models")));
    }
    let mut values = model.operand_values.to_vec();
    values.resize(values.len().next_multiple_of(ALIGNMENT), 0);
    let first = u32::try_from(first).map_err(Error::bad_data)?;
    let shift = Shift {
        values: u32::try_from(values.len()).map_err(Error::bad_data)?,
        pools: other.pools.iter().map(|pool| pool_index(&mut model.pools, pool.clone())).collect(),
        graphs: first + 1,
        other: &other.extension_name_to_prefix,
    };
    values.extend_from_slice(&other.operand_values);
    u32::try_from(values.len()).map_err(Error::bad_data)?;
    for graph in std::iter::once(&other.main).chain(&other.referenced) {
        model.referenced.push(shift.graph(graph, extensions)?);
    }
    model.operand_values = values.into();
    Ok(first)
}

impl Shift<'_> {
    fn graph(&self, graph: &Subgraph, extensions: &mut Extensions) -> Result<Subgraph> {
        let mut graph = graph.clone();
        for operand in &mut graph.operands {
            if let Some(code) = ExtensionCode::of_operand(operand.ty) {
                operand.ty = self.operand_type(code, extensions)?;
            }
            let location = &mut operand.location;
            match operand.lifetime {
                OperandLifeTime::ConstantCopy => location.offset += self.values,
                OperandLifeTime::ConstantReference => {
                    let pool = usize::try_from(location.pool_index).ok();
                    let pool = pool.and_then(|pool| self.pools.get(pool));
                    location.pool_index =
                        *pool.ok_or_else(|| Error::bad_data("a constant in no pool"))?;
                }
                OperandLifeTime::Subgraph => location.offset += self.graphs,
                _ => {}
            }
        }
        for operation in &mut graph.operations {
            if let Some(code) = ExtensionCode::of_operation(operation.ty) {
                operation.ty = self.operation_type(code, extensions)?;
            }
        }
        Ok(graph)
    }

    fn operand_type(&self, code: ExtensionCode, new: &mut Extensions) -> Result<OperandType> {
        let prefix = self.prefix(code.prefix, new)?;
        Ok(ExtensionCode { prefix, ..code }.operand_type())
    }

    fn operation_type(&self, code: ExtensionCode, new: &mut Extensions) -> Result<OperationType> {
        let prefix = self.prefix(code.prefix, new)?;
        Ok(ExtensionCode { prefix, ..code }.operation_type())
    }

    fn prefix(&self, old: u16, new: &mut Extensions) -> Result<u16> {
        let name = self.other.iter().find(|(_, prefix)| *prefix == old);
        let (name, _) = name.ok_or_else(|| Error::bad_data(format!("no extension {old}")))?;
        new.prefix_of(name)
    }
}
