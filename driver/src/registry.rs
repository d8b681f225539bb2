//! The operations and operand types that a device knows: those of the base range, and those that
//! extensions bring from crates of their own.
//!
//! A model names an extension's types by a prefix of its own choice and the type's number within the
//! extension; the registry goes by the extension's name.

use burst_hal::validate::validate_extension_name;
use burst_hal::{Extension, ExtensionCode, ExtraParams, Model, Operand, OperationType};

use crate::SignatureError;
use crate::error::ExtensionFault;
use crate::extension_type::{ExtensionType, TypeDef};
use crate::op::{Body, OpDef, OpTraits, Rules, Signature};
use crate::ops;

/// One operation of an extension. What it needs to say is what an [`OpDef`] says of an operation of the
/// base range.
#[derive(Debug)]
pub struct ExtensionOp {
    /// Its number within the extension.
    pub number: u16,
    /// Checks types, counts and whatever else can be said from the operands' declarations alone.
    pub validate: fn(&Signature<'_>) -> Result<(), SignatureError>,
    /// How it infers shapes, chooses kernels, and computes.
    pub body: &'static dyn Body,
    /// What else the plan has to know.
    pub traits: OpTraits,
}

/// An extension: operand types and operations under a name. [`crate::op`] has an example.
#[derive(Debug)]
pub struct ExtensionDef {
    /// Name in reverse domain form, such as `org.example.complex`.
    pub name: &'static str,
    /// The operand types it brings.
    pub types: &'static [TypeDef],
    /// The operations it brings.
    pub operations: &'static [ExtensionOp],
}

impl ExtensionDef {
    fn number_twice(&self) -> Option<u16> {
        let mut types: Vec<u16> = self.types.iter().map(|ty| ty.number).collect();
        let mut operations: Vec<u16> = self.operations.iter().map(|op| op.number).collect();
        [&mut types, &mut operations].into_iter().find_map(|numbers| {
            numbers.sort_unstable();
            numbers.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
        })
    }
}

/// Why an extension cannot be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is not lower case in reverse domain form.
    #[error("{name:?} is no name of an extension")]
    Name {
        /// The name.
        name: &'static str,
    },
    /// An extension of this name is there already.
    #[error("the extension {name} is registered already")]
    Twice {
        /// The name.
        name: &'static str,
    },
    /// Two types or two operations have the same number.
    #[error("the extension {name} uses the number {number} twice")]
    NumberTwice {
        /// The extension.
        name: &'static str,
        /// The number.
        number: u16,
    },
}

/// The operations and operand types that a device knows.
#[derive(Debug, Clone)]
pub struct Registry {
    /// Operations of the base range, by code.
    base: Box<[Option<&'static OpDef>]>,
    extensions: Vec<&'static ExtensionDef>,
}

/// The operations of the base range, without extensions.
impl Default for Registry {
    fn default() -> Self {
        let mut base = vec![None; OperationType::ALL.len()].into_boxed_slice();
        for def in ops::all() {
            if let Some(row) = index(def.code).and_then(|index| base.get_mut(index)) {
                *row = Some(def);
            }
        }
        Registry { base, extensions: Vec::new() }
    }
}

fn index(code: OperationType) -> Option<usize> {
    usize::try_from(code.code()).ok()
}

impl Registry {
    /// This registry and an extension.
    ///
    /// # Errors
    /// A name that no extension may have or that is there already; a number that stands for two types
    /// or for two operations.
    pub fn with_extension(mut self, def: &'static ExtensionDef) -> Result<Self, RegistryError> {
        let name = def.name;
        if !validate_extension_name(name) {
            return Err(RegistryError::Name { name });
        }
        if self.extensions.iter().any(|known| known.name == name) {
            return Err(RegistryError::Twice { name });
        }
        if let Some(number) = def.number_twice() {
            return Err(RegistryError::NumberTwice { name, number });
        }
        self.extensions.push(def);
        Ok(self)
    }

    /// The definition of an operation of the base range; `None` for one that is not there.
    #[must_use]
    pub fn find(&self, code: OperationType) -> Option<&'static OpDef> {
        *self.base.get(index(code)?)?
    }

    /// The extensions, as a device tells of them.
    #[must_use]
    pub fn extensions(&self) -> Vec<Extension> {
        let extension = |def: &&ExtensionDef| Extension {
            name: def.name.to_owned(),
            operand_types: def.types.iter().map(TypeDef::information).collect(),
        };
        self.extensions.iter().map(extension).collect()
    }

    /// What the types of a model mean here.
    pub(crate) fn of_model<'a>(&'a self, model: &'a Model) -> Types<'a> {
        Types { registry: self, prefixes: &model.extension_name_to_prefix }
    }
}

/// What the types of one model mean to a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types<'a> {
    registry: &'a Registry,
    prefixes: &'a [(String, u16)],
}

impl<'a> Types<'a> {
    /// The extension names of the model with their prefixes.
    pub(crate) fn prefixes(self) -> &'a [(String, u16)] {
        self.prefixes
    }

    /// The rules of an operation; `None` for one of the base range that is not there.
    ///
    /// # Errors
    /// An extension or an operation of one that is not known here.
    pub(crate) fn operation(self, ty: OperationType) -> Result<Option<Rules>, ExtensionFault> {
        let Some(code) = ExtensionCode::of_operation(ty) else {
            return Ok(self.registry.find(ty).map(OpDef::rules));
        };
        let def = self.extension(code.prefix)?;
        let found = def.operations.iter().find(|op| op.number == code.number);
        let ExtensionOp { validate, body, traits, .. } = found.ok_or_else(|| {
            ExtensionFault::NoOperation { name: def.name.to_owned(), number: code.number }
        })?;
        Ok(Some(Rules { validate: *validate, body: *body, traits: *traits }))
    }

    /// What an operand's type is; `None` for one of the base range.
    ///
    /// # Errors
    /// An extension or a type of one that is not known here.
    pub(crate) fn operand(
        self,
        operand: &Operand,
    ) -> Result<Option<ExtensionType>, ExtensionFault> {
        let Some(code) = ExtensionCode::of_operand(operand.ty) else { return Ok(None) };
        let def = self.extension(code.prefix)?;
        let found = def.types.iter().find(|ty| ty.number == code.number);
        let ty = found.ok_or_else(|| ExtensionFault::NoType {
            name: def.name.to_owned(),
            number: code.number,
        })?;
        let params = match &operand.extra_params {
            ExtraParams::Extension(bytes) => Some(bytes.clone()),
            _ => None,
        };
        Ok(Some(ExtensionType { extension: def.name, def: *ty, params }))
    }

    fn extension(self, prefix: u16) -> Result<&'static ExtensionDef, ExtensionFault> {
        // A legal model names every prefix that it uses.
        let named = self.prefixes.iter().find(|(_, declared)| *declared == prefix);
        let name = named.map_or("", |(name, _)| name.as_str());
        let found = self.registry.extensions.iter().find(|def| def.name == name).copied();
        found.ok_or_else(|| ExtensionFault::Unknown { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_base_range_is_found_by_its_code() {
        let registry = Registry::default();
        for code in OperationType::ALL {
            assert_eq!(registry.find(*code).map(|def| def.code), Some(*code));
        }
        for code in [-1, 102, 10_000, 0x1_0000] {
            assert!(registry.find(OperationType::from_code(code)).is_none(), "{code}");
        }
        assert_eq!(ops::all().count(), OperationType::ALL.len(), "one stands in two rows");
    }

    #[test]
    fn names_and_numbers_of_extensions_are_there_once() {
        const TYPE: TypeDef = TypeDef { number: 4, is_tensor: true, byte_size: 3 };
        static GOOD: ExtensionDef =
            ExtensionDef { name: "org.example.one", types: &[TYPE], operations: &[] };
        static SAME: ExtensionDef =
            ExtensionDef { name: "org.example.one", types: &[], operations: &[] };
        static DOUBLE: ExtensionDef =
            ExtensionDef { name: "org.example.two", types: &[TYPE, TYPE], operations: &[] };
        static NAMELESS: ExtensionDef =
            ExtensionDef { name: "Example", types: &[], operations: &[] };
        let registry = Registry::default().with_extension(&GOOD).unwrap();
        assert_eq!(registry.extensions()[0].operand_types, [TYPE.information()]);
        let refused = |def| registry.clone().with_extension(def).unwrap_err();
        assert_eq!(refused(&SAME), RegistryError::Twice { name: SAME.name });
        let twice = RegistryError::NumberTwice { name: DOUBLE.name, number: 4 };
        assert_eq!(refused(&DOUBLE), twice);
        assert_eq!(refused(&NAMELESS), RegistryError::Name { name: NAMELESS.name });
    }
}
