//! Items with a type, above the ends that move bytes.

use std::marker::PhantomData;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::clock::Deadline;
use crate::consumer::Consumer;
use crate::descriptor::Descriptor;
use crate::error::{DescriptorError, QueueError};
use crate::producer::Producer;
use crate::queue_memory::QueueConfig;
use crate::unsync::{UnsyncConsumer, UnsyncProducer};

/// What can travel as an item: plain data without padding, of which every bit pattern is a value, since
/// the peer can send any. Derive `zerocopy`'s three traits.
///
/// ```
/// #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
/// #[repr(C)]
/// struct Sample {
///     channel: u32,
///     value: f32,
/// }
/// fn is_item<T: fmq::Item>() {}
/// is_item::<Sample>();
/// ```
///
/// Types with padding, or with bit patterns that are no value, are refused when compiled:
///
/// ```compile_fail
/// fn is_item<T: fmq::Item>() {}
/// is_item::<bool>();
/// ```
/// ```compile_fail
/// # #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
/// #[repr(C)]
/// struct Padded {
///     small: u8,
///     large: u32,
/// }
/// ```
pub trait Item: FromBytes + IntoBytes + Immutable {}
impl<T: FromBytes + IntoBytes + Immutable> Item for T {}

/// An end of a queue whose items are `T`s; `E` is the end that moves their bytes, with everything that is
/// not about items ([`get_ref`](Typed::get_ref), [`get_mut`](Typed::get_mut)).
///
/// ```
/// use fmq::{Deadline, Item, TypedConsumer, TypedProducer};
///
/// let mut producer = TypedProducer::<[f32; 4]>::create(16)?;
/// let mut consumer = TypedConsumer::<[f32; 4]>::attach(producer.get_ref().descriptor()?)?;
/// producer.write(&[[1.0, 2.0, 3.0, 4.0], [5.0; 4]])?;
/// let mut two = [[0.0; 4]; 2];
/// consumer.read_blocking(&mut two, Deadline::never())?;
/// assert_eq!(two[0], [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), fmq::QueueError>(())
/// ```
#[derive(Debug)]
pub struct Typed<E, T> {
    end: E,
    items: PhantomData<T>,
}

/// A [`Producer`] of `T`s.
pub type TypedProducer<T> = Typed<Producer, T>;
/// A [`Consumer`] of `T`s.
pub type TypedConsumer<T> = Typed<Consumer, T>;
/// An [`UnsyncProducer`] of `T`s.
pub type TypedUnsyncProducer<T> = Typed<UnsyncProducer, T>;
/// An [`UnsyncConsumer`] of `T`s.
pub type TypedUnsyncConsumer<T> = Typed<UnsyncConsumer, T>;

impl<E, T: Item> Typed<E, T> {
    fn attached(
        descriptor: Descriptor,
        attach: impl FnOnce(Descriptor) -> Result<E, QueueError>,
    ) -> Result<Self, QueueError> {
        // No type is as long as that: then the descriptor's size is another one.
        let expected = u32::try_from(size_of::<T>()).unwrap_or(u32::MAX);
        descriptor.expect_quantum(expected)?;
        Ok(Typed { end: attach(descriptor)?, items: PhantomData })
    }

    fn made(end: E, quantum: usize) -> Result<Self, QueueError> {
        if quantum != size_of::<T>() {
            let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
            let (quantum, expected) = (number(quantum), number(size_of::<T>()));
            return Err(DescriptorError::Quantum { quantum, expected }.into());
        }
        Ok(Typed { end, items: PhantomData })
    }

    /// The end that moves the bytes.
    pub fn get_ref(&self) -> &E {
        &self.end
    }

    /// The end that moves the bytes; what goes through it are bytes of whole items too.
    pub fn get_mut(&mut self) -> &mut E {
        &mut self.end
    }

    /// The end that moves the bytes.
    pub fn into_inner(self) -> E {
        self.end
    }
}

impl<T: Item> TypedProducer<T> {
    /// As [`Producer::create`], with room for so many items.
    ///
    /// # Errors
    /// As [`Producer::create`].
    pub fn create(capacity: usize) -> Result<Self, QueueError> {
        Self::from_bytes(Producer::create(&QueueConfig::new(size_of::<T>(), capacity))?)
    }

    /// As [`Producer::attach`].
    ///
    /// # Errors
    /// As [`Producer::attach`]; [`DescriptorError::Quantum`] where items have another size.
    pub fn attach(descriptor: Descriptor) -> Result<Self, QueueError> {
        Self::attached(descriptor, Producer::attach)
    }

    /// This end, however it was made.
    ///
    /// # Errors
    /// [`DescriptorError::Quantum`] where items have another size.
    pub fn from_bytes(end: Producer) -> Result<Self, QueueError> {
        let quantum = end.quantum();
        Self::made(end, quantum)
    }

    /// As [`Producer::write`].
    ///
    /// # Errors
    /// As [`Producer::write`].
    #[inline]
    pub fn write(&mut self, items: &[T]) -> Result<(), QueueError> {
        self.end.write(items.as_bytes())
    }

    /// As [`Producer::write_quiet`].
    ///
    /// # Errors
    /// As [`Producer::write_quiet`].
    #[inline]
    pub fn write_quiet(&mut self, items: &[T]) -> Result<(), QueueError> {
        self.end.write_quiet(items.as_bytes())
    }

    /// As [`Producer::write_blocking`].
    ///
    /// # Errors
    /// As [`Producer::write_blocking`].
    #[inline]
    pub fn write_blocking(&mut self, items: &[T], deadline: Deadline) -> Result<(), QueueError> {
        self.end.write_blocking(items.as_bytes(), deadline)
    }
}

impl<T: Item> TypedConsumer<T> {
    /// As [`Consumer::create`], with room for so many items.
    ///
    /// # Errors
    /// As [`Consumer::create`].
    pub fn create(capacity: usize) -> Result<Self, QueueError> {
        Self::from_bytes(Consumer::create(&QueueConfig::new(size_of::<T>(), capacity))?)
    }

    /// As [`Consumer::attach`].
    ///
    /// # Errors
    /// As [`Consumer::attach`]; [`DescriptorError::Quantum`] where items have another size.
    pub fn attach(descriptor: Descriptor) -> Result<Self, QueueError> {
        Self::attached(descriptor, Consumer::attach)
    }

    /// This end, however it was made.
    ///
    /// # Errors
    /// [`DescriptorError::Quantum`] where items have another size.
    pub fn from_bytes(end: Consumer) -> Result<Self, QueueError> {
        let quantum = end.quantum();
        Self::made(end, quantum)
    }

    /// As [`Consumer::read`]. On an error the items are as they were.
    ///
    /// # Errors
    /// As [`Consumer::read`].
    #[inline]
    pub fn read(&mut self, items: &mut [T]) -> Result<(), QueueError> {
        self.end.read(items.as_mut_bytes())
    }

    /// As [`Consumer::read_quiet`].
    ///
    /// # Errors
    /// As [`Consumer::read_quiet`].
    #[inline]
    pub fn read_quiet(&mut self, items: &mut [T]) -> Result<(), QueueError> {
        self.end.read_quiet(items.as_mut_bytes())
    }

    /// As [`Consumer::read_deferred`].
    ///
    /// # Errors
    /// As [`Consumer::read_deferred`].
    #[inline]
    pub fn read_deferred(&mut self, items: &mut [T]) -> Result<(), QueueError> {
        self.end.read_deferred(items.as_mut_bytes())
    }

    /// As [`Consumer::read_blocking`].
    ///
    /// # Errors
    /// As [`Consumer::read_blocking`].
    #[inline]
    pub fn read_blocking(&mut self, items: &mut [T], deadline: Deadline) -> Result<(), QueueError> {
        self.end.read_blocking(items.as_mut_bytes(), deadline)
    }
}

impl<T: Item> TypedUnsyncProducer<T> {
    /// As [`UnsyncProducer::create`], with room for so many items.
    ///
    /// # Errors
    /// As [`UnsyncProducer::create`].
    pub fn create(capacity: usize) -> Result<Self, QueueError> {
        Self::from_bytes(UnsyncProducer::create(&QueueConfig::new(size_of::<T>(), capacity))?)
    }

    /// As [`UnsyncProducer::attach`].
    ///
    /// # Errors
    /// As [`UnsyncProducer::attach`]; [`DescriptorError::Quantum`] where items have another size.
    pub fn attach(descriptor: Descriptor) -> Result<Self, QueueError> {
        Self::attached(descriptor, UnsyncProducer::attach)
    }

    /// This end, however it was made.
    ///
    /// # Errors
    /// [`DescriptorError::Quantum`] where items have another size.
    pub fn from_bytes(end: UnsyncProducer) -> Result<Self, QueueError> {
        let quantum = end.quantum();
        Self::made(end, quantum)
    }

    /// As [`UnsyncProducer::write`].
    ///
    /// # Errors
    /// As [`UnsyncProducer::write`].
    #[inline]
    pub fn write(&mut self, items: &[T]) -> Result<(), QueueError> {
        self.end.write(items.as_bytes())
    }
}

impl<T: Item> TypedUnsyncConsumer<T> {
    /// As [`UnsyncConsumer::attach`].
    ///
    /// # Errors
    /// As [`UnsyncConsumer::attach`]; [`DescriptorError::Quantum`] where items have another size.
    pub fn attach(descriptor: Descriptor) -> Result<Self, QueueError> {
        Self::attached(descriptor, UnsyncConsumer::attach)
    }

    /// As [`UnsyncConsumer::read`]. After an [`Overrun`](QueueError::Overrun) the items are values, and
    /// worthless.
    ///
    /// # Errors
    /// As [`UnsyncConsumer::read`].
    #[inline]
    pub fn read(&mut self, items: &mut [T]) -> Result<(), QueueError> {
        self.end.read(items.as_mut_bytes())
    }
}
