//! A driver's own types, taken back from the traits of the contract.
//!
//! Whoever implements [`Device`](crate::Device) makes its prepared models and buffers, and meets them again
//! behind the traits: among the roles of a [buffer](crate::BufferRequest::models), or in a context of its
//! own for bursts. One that somebody else made is no such type, and gives nothing.
//!
//! ```
//! use std::sync::Arc;
//!
//! use burst_hal::*;
//!
//! #[derive(Debug)]
//! struct Own {
//!     device: u32,
//! }
//!
//! impl PreparedModel for Own {
//!     fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
//!         ExecutionResult::of(ErrorStatus::None)
//!     }
//! }
//!
//! /// The models of the roles, all of them of this device.
//! fn own(request: &BufferRequest, device: u32) -> Result<Vec<&Own>, Failure> {
//!     let models = request.models.iter();
//!     let own = models.map(|model| model.downcast_ref::<Own>().filter(|own| own.device == device));
//!     let all: Option<Vec<&Own>> = own.collect();
//!     all.ok_or_else(|| Failure::invalid("a role in a model of another device"))
//! }
//!
//! let models: Vec<Arc<dyn PreparedModel>> = vec![Arc::new(Own { device: 3 })];
//! let request = BufferRequest { models, ..BufferRequest::default() };
//! assert_eq!(own(&request, 3).unwrap().len(), 1);
//! assert_eq!(own(&request, 4).unwrap_err().status, ErrorStatus::InvalidArgument);
//!
//! let model = Arc::clone(&request.models[0]);
//! let shared: Arc<Own> = model.downcast_arc().ok().expect("it is one");
//! assert_eq!(shared.device, 3);
//! ```

use std::any::Any;
use std::sync::Arc;

use crate::{Buffer, PreparedModel};

impl dyn PreparedModel {
    /// The model as the type that its driver made; `None` where it is of another one. A model that only
    /// [wraps](PreparedModel::wrapped) another is looked through.
    #[must_use]
    pub fn downcast_ref<M: PreparedModel>(&self) -> Option<&M> {
        let mut model = self;
        loop {
            let any: &dyn Any = model;
            match any.downcast_ref() {
                Some(own) => return Some(own),
                None => model = &**model.wrapped()?,
            }
        }
    }

    /// As `downcast_ref`, to keep.
    ///
    /// # Errors
    /// The model itself, where it is of another type.
    pub fn downcast_arc<M: PreparedModel>(self: Arc<Self>) -> Result<Arc<M>, Arc<Self>> {
        let mut model = Arc::clone(&self);
        loop {
            let any: Arc<dyn Any + Send + Sync> = Arc::clone(&model) as _;
            if let Ok(own) = any.downcast() {
                return Ok(own);
            }
            let Some(inner) = model.wrapped().cloned() else { return Err(self) };
            model = inner;
        }
    }
}

impl dyn Buffer {
    /// The buffer as the type that its driver made; `None` where it is of another one.
    #[must_use]
    pub fn downcast_ref<B: Buffer>(&self) -> Option<&B> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }

    /// As `downcast_ref`, to keep.
    ///
    /// # Errors
    /// The buffer itself, where it is of another type.
    pub fn downcast_arc<B: Buffer>(self: Arc<Self>) -> Result<Arc<B>, Arc<Self>> {
        let any: Arc<dyn Any + Send + Sync> = Arc::clone(&self) as _;
        any.downcast().map_err(|_| self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Pool, Request, RequestArgument,
    };

    struct One(u32);
    struct Other;
    struct Around(Arc<dyn PreparedModel>);

    impl PreparedModel for One {
        fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
            ExecutionResult::of(ErrorStatus::None)
        }
    }

    impl PreparedModel for Other {
        fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
            ExecutionResult::of(ErrorStatus::None)
        }
    }

    impl PreparedModel for Around {
        fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
            ExecutionResult::of(ErrorStatus::None)
        }

        fn wrapped(&self) -> Option<&Arc<dyn PreparedModel>> {
            Some(&self.0)
        }
    }

    impl Buffer for One {
        fn token(&self) -> u32 {
            self.0
        }

        fn copy_to(&self, _: &Pool) -> Result<(), Failure> {
            Ok(())
        }

        fn copy_from(&self, _: &Pool, _: &[u32]) -> Result<(), Failure> {
            Ok(())
        }
    }

    impl Buffer for RequestArgument {
        fn token(&self) -> u32 {
            1
        }

        fn copy_to(&self, _: &Pool) -> Result<(), Failure> {
            Ok(())
        }

        fn copy_from(&self, _: &Pool, _: &[u32]) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_model_is_its_own_type_and_no_other_also_behind_what_wraps_it() {
        let own: Arc<dyn PreparedModel> = Arc::new(One(7));
        let wrapped: Arc<dyn PreparedModel> = Arc::new(Around(Arc::clone(&own)));
        let twice: Arc<dyn PreparedModel> = Arc::new(Around(Arc::clone(&wrapped)));
        for model in [&own, &wrapped, &twice] {
            assert_eq!(model.downcast_ref::<One>().map(|one| one.0), Some(7));
            assert!(model.downcast_ref::<Other>().is_none());
            assert_eq!(Arc::clone(model).downcast_arc::<One>().ok().map(|one| one.0), Some(7));
            let same = Arc::clone(model).downcast_arc::<Other>().err().unwrap();
            assert!(Arc::ptr_eq(&same, model), "who is refused keeps what it had");
        }
        assert!(wrapped.downcast_ref::<Around>().is_some());
        assert!(own.downcast_ref::<Around>().is_none());
    }

    #[test]
    fn a_buffer_is_its_own_type_and_no_other() {
        let buffer: Arc<dyn Buffer> = Arc::new(One(9));
        assert_eq!(buffer.downcast_ref::<One>().map(|one| one.0), Some(9));
        assert!(buffer.downcast_ref::<RequestArgument>().is_none());
        let same = Arc::clone(&buffer).downcast_arc::<RequestArgument>().err().unwrap();
        assert!(Arc::ptr_eq(&same, &buffer));
        assert_eq!(buffer.downcast_arc::<One>().ok().map(|one| one.0), Some(9));
    }
}
