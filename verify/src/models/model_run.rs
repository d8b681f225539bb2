//! The goldens of one model: the whole, and the parts at whose edges a golden has values.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::closeness::{Judge, Judgement};
use super::device_route::DeviceRoute;
use super::files::read;
use super::golden::{BoundaryTensor, Golden};
use super::manifest::{Fair, ModelEntry, Tolerance};
use super::model::OutputTensor;
use super::pipeline::{ImportedModel, Importer, Pipeline};
use super::report::{Class, GoldenResult};
use crate::error::RunError;
use crate::golden_error::GoldenError;
use crate::judge::elements;
use crate::run::message;

/// A model file, and how to run it.
pub(crate) struct ModelRun<'a> {
    model: &'a ModelEntry,
    file: Vec<u8>,
    importer: &'a dyn Importer,
    repetitions: usize,
}

/// A model on every route.
struct Prepared {
    model: ImportedModel,
    pipelines: Vec<Pipeline>,
}

/// Outputs by execution, then by output; those of states come last.
type Outputs = Vec<Vec<OutputTensor>>;

impl<'a> ModelRun<'a> {
    /// Reads the model's file.
    pub(crate) fn new(
        model: &'a ModelEntry,
        importer: &'a dyn Importer,
        repetitions: usize,
    ) -> Result<Self, GoldenError> {
        Ok(ModelRun { model, file: read(&model.file)?, importer, repetitions })
    }

    /// Runs every golden, for as long as it is to go on.
    pub(crate) fn goldens(
        &self,
        routes: &mut [DeviceRoute<'_>],
        progress: &impl Fn(&GoldenResult),
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<GoldenResult>, RunError> {
        let mut whole = self.prepare(routes, &[], &[]);
        let mut results = Vec::with_capacity(self.model.goldens.len());
        for golden in &self.model.goldens {
            let judged = match &mut whole {
                Ok(whole) => self.whole(golden, whole, routes),
                Err(why) => Err(why.clone()),
            };
            let result = self.result(golden, judged, || self.parts(golden, routes));
            if !go_on() {
                break;
            }
            if result.class == Class::Failed {
                for route in &mut *routes {
                    route.lease.repair()?;
                }
                if whole.is_ok() {
                    whole = self.prepare(routes, &[], &[]);
                }
            }
            progress(&result);
            results.push(result);
        }
        Ok(results)
    }

    /// Puts together what came of the whole model and of its parts.
    fn result(
        &self,
        golden: &Golden,
        whole: Result<Judgement, String>,
        parts: impl FnOnce() -> Result<(), String>,
    ) -> GoldenResult {
        let max_diff = whole.as_ref().ok().map(|judgement| judgement.max_diff);
        let class = whole.and_then(|judgement| self.class(judgement));
        let (class, why) = match class.and_then(|class| parts().map(|()| class)) {
            Ok(class) => class,
            Err(why) => (Class::Failed, Some(why)),
        };
        let (model, input) = (self.model.name.clone(), golden.name.clone());
        GoldenResult { model, input, class, max_diff, why }
    }

    /// Strict, or fair with the reason why it is no better; else why it failed.
    fn class(&self, judgement: Judgement) -> Result<(Class, Option<String>), String> {
        match (judgement.not_strict, judgement.not_fair) {
            (None, _) => Ok((Class::Strict, None)),
            (Some(why), None) if !self.model.strict_reachable => Ok((Class::Fair, Some(why))),
            (Some(why), None) => Err(format!("fair, but strict is in reach: {why}")),
            (Some(_), Some(why)) => Err(why),
        }
    }

    /// Prepares the model, or a part of it, on every route.
    fn prepare(
        &self,
        routes: &mut [DeviceRoute<'_>],
        from: &[&str],
        to: &[&str],
    ) -> Result<Prepared, String> {
        let model = self.importer.import(&self.file, from, to)?;
        let open = |route: &mut DeviceRoute<'_>| {
            let interface = route.lease.interface();
            let opened = guarded(|| Pipeline::open(route.lease.target(), &model, route.route));
            let opened = opened.map(|pipeline| pipeline.through(interface));
            opened.map_err(|why| format!("{}: {why}", route.name))
        };
        let pipelines = routes.iter_mut().map(open).collect::<Result<_, _>>()?;
        Ok(Prepared { model, pipelines })
    }

    /// The whole model, from a golden's input to its outputs.
    fn whole(
        &self,
        golden: &Golden,
        whole: &mut Prepared,
        routes: &mut [DeviceRoute<'_>],
    ) -> Result<Judgement, String> {
        let inputs: Vec<_> =
            (0..golden.executions()).map(|execution| vec![golden.input.of(execution)]).collect();
        let outputs = self.everywhere(&inputs, whole, routes)?;
        judge(golden, &outputs, &self.model.tolerance)
    }

    /// The parts at whose edges the golden has values. Behind the last edge, and before the first
    /// one where a device can run that, everything has to be equal.
    fn parts(&self, golden: &Golden, routes: &mut [DeviceRoute<'_>]) -> Result<(), String> {
        if golden.boundary.is_empty() {
            return Ok(());
        }
        let edge = self.last_edge(&golden.boundary)?;
        let names: Vec<&str> = edge.iter().map(|tensor| tensor.name.as_str()).collect();
        let inputs = edge.iter().map(|tensor| tensor.bytes.clone()).collect();
        let outputs = self.part(routes, (&names, &[]), inputs)?;
        let behind = judge(golden, &[outputs], &self.model.tolerance)?;
        let boundary = names.join(" and ");
        if let Some(why) = behind.not_strict {
            return Err(format!("the part behind {boundary}: {why}"));
        }
        let before = self.importer.import(&self.file, &[], &names);
        let outputs = if before.is_ok_and(|before| before.parts.len() == 1) {
            self.part(routes, (&[], &names), vec![golden.input.of(0)])?
        } else {
            // A device begins to compute at the first edge.
            let Some(first) = golden.boundary.first().filter(|first| first.name != names[0]) else {
                return Ok(());
            };
            self.part(routes, (&[&first.name], &names), vec![first.bytes.clone()])?
        };
        match equal(&outputs, &edge).not_strict {
            None => Ok(()),
            Some(why) => Err(format!("the part before {boundary}: {why}")),
        }
    }

    /// Those tensors of the boundary behind which nothing reads any other of them.
    fn last_edge<'g>(
        &self,
        boundary: &'g [BoundaryTensor],
    ) -> Result<Vec<&'g BoundaryTensor>, String> {
        let names: Vec<&str> = boundary.iter().map(|tensor| tensor.name.as_str()).collect();
        let part = self.importer.import(&self.file, &names, &[])?;
        let first = part.parts.first().ok_or("the model has no parts")?;
        let read = first.inputs().map(|operand| operand.number_of_consumers > 0);
        Ok(boundary.iter().zip(read).filter(|(_, read)| *read).map(|(tensor, _)| tensor).collect())
    }

    /// Runs a part once.
    fn part(
        &self,
        routes: &mut [DeviceRoute<'_>],
        (from, to): (&[&str], &[&str]),
        inputs: Vec<Vec<u8>>,
    ) -> Result<Vec<OutputTensor>, String> {
        let mut part = self.prepare(routes, from, to)?;
        let mut outputs = self.everywhere(&[inputs], &mut part, routes)?;
        Ok(outputs.pop().unwrap_or_default())
    }

    /// Runs the executions over every route as often as asked for: their outputs, which have to be
    /// the same everywhere.
    fn everywhere(
        &self,
        inputs: &[Vec<Vec<u8>>],
        prepared: &mut Prepared,
        routes: &mut [DeviceRoute<'_>],
    ) -> Result<Outputs, String> {
        let mut first: Option<(&str, Outputs)> = None;
        let Prepared { model, pipelines } = prepared;
        for (route, pipeline) in routes.iter_mut().zip(pipelines) {
            for _ in 0..self.repetitions.max(1) {
                let outputs = guarded(|| executions(inputs, model, pipeline))
                    .map_err(|why| format!("{}: {why}", route.name))?;
                match &first {
                    None => first = Some((route.name, outputs)),
                    Some((name, known)) if *known != outputs => {
                        let difference = difference(known, &outputs);
                        return Err(format!("{} differs from {name} {difference}", route.name));
                    }
                    Some(_) => {}
                }
            }
            if let Some(what) = route.lease.objection() {
                return Err(format!("{}: {what}", route.name));
            }
        }
        first.map(|(_, outputs)| outputs).ok_or_else(|| "there is no route to a driver".to_owned())
    }
}

/// Executes one after the other, from states that are zero.
fn executions(
    inputs: &[Vec<Vec<u8>>],
    model: &mut ImportedModel,
    pipeline: &mut Pipeline,
) -> Result<Outputs, String> {
    pipeline.reset();
    let execute = |(number, inputs): (usize, &Vec<Vec<u8>>)| {
        let outputs = pipeline.execute(inputs, &mut model.bridges);
        outputs.map_err(|error| format!("execution {number}: {error}"))
    };
    inputs.iter().enumerate().map(execute).collect()
}

/// Where outputs begin to differ.
fn difference(a: &Outputs, b: &Outputs) -> String {
    let pairs = a.iter().zip(b).enumerate();
    let mut compared = pairs.flat_map(|(execution, (a, b))| {
        let outputs = a.iter().zip(b).enumerate();
        outputs.map(move |(output, (a, b))| (execution, output, a != b))
    });
    compared.find(|(_, _, differs)| *differs).map_or_else(
        || "in the number of outputs".to_owned(),
        |(execution, output, _)| format!("in output {output} of execution {execution}"),
    )
}

/// Compares the outputs of a golden's executions with the reference.
fn judge(
    golden: &Golden,
    outputs: &[Vec<OutputTensor>],
    tolerance: &Tolerance,
) -> Result<Judgement, String> {
    let mut judge = Judge::new(tolerance);
    for (execution, outputs) in outputs.iter().enumerate() {
        let mut got = Vec::with_capacity(golden.outputs.len());
        let mut want = Vec::with_capacity(golden.outputs.len());
        for (index, expected) in golden.outputs.iter().enumerate() {
            let output = outputs.get(index).ok_or_else(|| format!("there is no output {index}"))?;
            let values = elements(output.ty, &output.bytes);
            if index == 0
                && execution == 0
                && let Some(map) = &golden.classes
            {
                judge.add_classes(&values, map);
            }
            let found = values.len();
            got.push(expected.select(values).ok_or_else(|| {
                let wanted = expected.count();
                format!("output {index} has {found} values, the reference {wanted}")
            })?);
            want.push(expected.of(execution));
        }
        judge.add(execution, &got, &want);
    }
    Ok(judge.finish())
}

/// Compares values at the edge of a part with the reference's.
fn equal(outputs: &[OutputTensor], edge: &[&BoundaryTensor]) -> Judgement {
    let tolerance = Tolerance::Quantized { fair: Fair { max_abs: 0.0, min_equal_fraction: 1.0 } };
    let mut judge = Judge::new(&tolerance);
    let got: Vec<Vec<f64>> = outputs.iter().map(|o| elements(o.ty, &o.bytes)).collect();
    let want: Vec<Vec<f64>> = edge.iter().map(|t| t.element.decode(&t.bytes)).collect();
    judge.add(0, &got, &want);
    judge.finish()
}

/// A device in this process may panic: that fails its golden, and no other.
fn guarded<T, E: std::fmt::Display>(run: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("panicked: {}", message(&*panic))),
    }
}
