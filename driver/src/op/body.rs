//! The code of an operation: how its shapes are inferred, a kernel is chosen, the outputs computed.
//!
//! Most operations have attributes: operands that say how to compute and not on what, such as
//! strides, an axis, an activation. Such an operation is [`WithAttributes`]: one function parses
//! them into a struct, and everything else gets that struct. Where the operands are constants the
//! plan parses them once ([`Body::bind`]) and keeps the result in the step. An operand whose value
//! only an execution knows is parsed by that execution, by the same function.

use std::fmt::Debug;

use crate::OpError;
use crate::op::{Inferred, Operands, Prepare, PrepareContext, Prepared, Run};
use crate::tensor::Args;

/// What an operation does, in the order in which it is asked to.
pub trait Stages: Debug + Send + Sync {
    /// Works out the outputs' shapes from the inputs' shapes, and from values where they matter.
    ///
    /// # Errors
    /// [`OpError::NotYet`] when they depend on what only an execution knows; otherwise what is
    /// wrong with the operands.
    fn infer(&self, args: &Args<'_>) -> Result<Inferred, OpError>;

    /// Chooses a fast kernel where one fits, with constants packed for it; `None`: the reference
    /// serves.
    ///
    /// # Errors
    /// As [`Stages::infer`].
    fn prepare(
        &self,
        args: &Args<'_>,
        context: &PrepareContext<'_>,
    ) -> Result<Option<Prepared>, OpError>;

    /// Computes the outputs: the plain reference for every type the operation has.
    ///
    /// # Errors
    /// What is wrong with the operands; what [`Stop::check`](crate::stop::Stop::check) says.
    fn execute(&self, run: &mut Run<'_, '_>) -> Result<(), OpError>;
}

/// The code of an operation. Asked for its [`Stages`] directly, it parses the attributes each time.
pub trait Body: Stages {
    /// The stages with the attributes parsed; `None` for an operation without attributes.
    ///
    /// # Errors
    /// [`OpError::NotYet`] when an attribute is known only when the model runs; otherwise what is
    /// wrong with the attributes.
    fn bind(&'static self, operands: &dyn Operands) -> Result<Option<Box<dyn Stages>>, OpError>;
}

/// An operation without attributes.
#[derive(Debug)]
pub struct Plain {
    /// See [`Stages::infer`].
    pub infer: fn(&Args<'_>) -> Result<Inferred, OpError>,
    /// See [`Stages::prepare`].
    pub prepare: Option<Prepare>,
    /// See [`Stages::execute`].
    pub execute: fn(&mut Run<'_, '_>) -> Result<(), OpError>,
}

impl Stages for Plain {
    fn infer(&self, args: &Args<'_>) -> Result<Inferred, OpError> {
        (self.infer)(args)
    }

    fn prepare(
        &self,
        args: &Args<'_>,
        context: &PrepareContext<'_>,
    ) -> Result<Option<Prepared>, OpError> {
        self.prepare.map_or(Ok(None), |prepare| prepare(args, context))
    }

    fn execute(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        (self.execute)(run)
    }
}

impl Body for Plain {
    fn bind(&'static self, _: &dyn Operands) -> Result<Option<Box<dyn Stages>>, OpError> {
        Ok(None)
    }
}

/// What parsing the attributes gave; an inference looks at it when it needs them.
pub type Parsed<'a, A> = Result<&'a A, OpError>;

/// An operation with attributes of type `A`.
#[derive(Debug)]
pub struct WithAttributes<A: 'static> {
    /// Parses the attributes. Checks all that can be said without the inputs' shapes.
    pub parse: fn(&dyn Operands) -> Result<A, OpError>,
    /// See [`Stages::infer`].
    pub infer: fn(&Args<'_>, Parsed<'_, A>) -> Result<Inferred, OpError>,
    /// See [`Stages::prepare`]. Not asked while an attribute is unknown.
    pub prepare: Option<PrepareWith<A>>,
    /// See [`Stages::execute`].
    pub execute: fn(&mut Run<'_, '_>, &A) -> Result<(), OpError>,
}

/// Chooses a kernel for these operands and attributes; `None`: the reference serves.
pub type PrepareWith<A> =
    fn(&Args<'_>, &A, &PrepareContext<'_>) -> Result<Option<Prepared>, OpError>;

impl<A: Debug + Send + Sync> WithAttributes<A> {
    fn prepare_with(
        &self,
        args: &Args<'_>,
        attributes: &A,
        context: &PrepareContext<'_>,
    ) -> Result<Option<Prepared>, OpError> {
        self.prepare.map_or(Ok(None), |prepare| prepare(args, attributes, context))
    }
}

impl<A: Debug + Send + Sync> Stages for WithAttributes<A> {
    fn infer(&self, args: &Args<'_>) -> Result<Inferred, OpError> {
        (self.infer)(args, (self.parse)(args).as_ref().map_err(OpError::clone))
    }

    fn prepare(
        &self,
        args: &Args<'_>,
        context: &PrepareContext<'_>,
    ) -> Result<Option<Prepared>, OpError> {
        self.prepare_with(args, &(self.parse)(args)?, context)
    }

    fn execute(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let attributes = (self.parse)(run)?;
        (self.execute)(run, &attributes)
    }
}

impl<A: Debug + Send + Sync> Body for WithAttributes<A> {
    fn bind(&'static self, operands: &dyn Operands) -> Result<Option<Box<dyn Stages>>, OpError> {
        Ok(Some(Box::new(Bound { body: self, attributes: (self.parse)(operands)? })))
    }
}

/// An operation whose attributes are parsed.
#[derive(Debug)]
struct Bound<A: 'static> {
    body: &'static WithAttributes<A>,
    attributes: A,
}

impl<A: Debug + Send + Sync> Stages for Bound<A> {
    fn infer(&self, args: &Args<'_>) -> Result<Inferred, OpError> {
        (self.body.infer)(args, Ok(&self.attributes))
    }

    fn prepare(
        &self,
        args: &Args<'_>,
        context: &PrepareContext<'_>,
    ) -> Result<Option<Prepared>, OpError> {
        self.body.prepare_with(args, &self.attributes, context)
    }

    fn execute(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        (self.body.execute)(run, &self.attributes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::op::Budget;
    use crate::ops::testing::{Tensor, with_args};
    use crate::scratch::Scratch;
    use crate::threads::Parallelism;

    static PARSED: AtomicUsize = AtomicUsize::new(0);

    /// Its only operand is its attribute; to execute it checks that it is 7.
    static BODY: WithAttributes<i32> = WithAttributes {
        parse: |operands| {
            PARSED.fetch_add(1, Ordering::Relaxed);
            operands.i32(0)
        },
        infer: |_, seven| seven.map(|_| Inferred::many([])),
        prepare: Some(|_, seven, _| expect_seven(*seven).map(|()| None)),
        execute: |_, seven| expect_seven(*seven),
    };

    fn expect_seven(value: i32) -> Result<(), OpError> {
        if value == 7 { Ok(()) } else { Err(OpError::value("seven", value)) }
    }

    #[test]
    fn bound_attributes_are_not_parsed_again() {
        let inputs = [Tensor::scalar_i32(7)];
        let context = PrepareContext {
            fast_kernels: true,
            isa: crate::kernels::Isa::PORTABLE,
            budget: &Budget::default(),
        };
        let execute = |stages: &dyn Stages| {
            let tensors = inputs.each_ref().map(Tensor::as_ref);
            let (outputs, scratch) = (&mut [], &mut Scratch::default());
            let (stop, parallelism) = (crate::stop::Stop::default(), Parallelism::ALONE);
            stages.execute(&mut Run { inputs: &tensors, outputs, scratch, stop, parallelism })
        };
        let bound = with_args(&inputs, |args| BODY.bind(args)).unwrap().unwrap();
        assert_eq!(PARSED.load(Ordering::Relaxed), 1);
        for _ in 0..3 {
            assert!(with_args(&inputs, |args| bound.infer(args)).is_ok());
            assert!(with_args(&inputs, |args| bound.prepare(args, &context)).is_ok());
            assert_eq!(execute(bound.as_ref()), Ok(()));
        }
        assert_eq!(PARSED.load(Ordering::Relaxed), 1, "what is bound is parsed");
        assert_eq!(execute(&BODY), Ok(()));
        assert_eq!(PARSED.load(Ordering::Relaxed), 2, "what is not bound is parsed when it runs");
    }
}
