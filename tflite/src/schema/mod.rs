//! The tables of a `.tflite` file, as far as the importer reads them.
//!
//! Field numbers are those of TensorFlow Lite schema version 3. Nothing is generated: each table
//! below names the fields that matter, and from the same rows come the accessor and the check that
//! the verifier makes before any accessor is called.

mod metadata;
mod options;
mod table;

use flatbuffers::{ForwardsUOffset, InvalidFlatbuffer, Vector, Verifiable, Verifier};

pub(crate) use metadata::*;
pub(crate) use options::*;
pub(crate) use table::{Scalars, Table, Tables, View};

/// Declares views of tables: one row per field that is read, with its number in the schema.
macro_rules! tables {
    ($($(#[$doc:meta])* $view:ident { $($id:literal $field:ident: $kind:tt $of:tt $(= $default:expr)?,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $view<'a>(Table<'a>);

        impl<'a> View<'a> for $view<'a> {
            fn of(table: Table<'a>) -> Self {
                $view(table)
            }
        }

        impl Verifiable for $view<'_> {
            fn run_verifier(verifier: &mut Verifier<'_, '_>, at: usize) -> Result<(), InvalidFlatbuffer> {
                verifier.visit_table(at)?
                    $(.visit_field::<field_type!($kind $of)>(stringify!($field), 4 + 2 * $id, false)?)*
                    .finish();
                Ok(())
            }
        }

        impl<'a> $view<'a> {
            $(accessor!($id $field: $kind $of $(= $default)?);)*
        }
    )*};
}

/// What the verifier must find in a field.
macro_rules! field_type {
    (scalar $of:tt) => { $of };
    (present _) => { u32 };
    (string _) => { ForwardsUOffset<&str> };
    (scalars $of:tt) => { ForwardsUOffset<Vector<'_, $of>> };
    (table $of:tt) => { ForwardsUOffset<$of<'_>> };
    (tables $of:tt) => { ForwardsUOffset<Vector<'_, ForwardsUOffset<$of<'_>>>> };
}

/// How a field is read.
macro_rules! accessor {
    ($id:literal $field:ident: scalar $of:tt = $default:expr) => {
        pub(crate) fn $field(self) -> $of {
            self.0.scalar($id, $default)
        }
    };
    ($id:literal $field:ident: present _) => {
        pub(crate) fn $field(self) -> bool {
            self.0.has($id)
        }
    };
    ($id:literal $field:ident: string _) => {
        pub(crate) fn $field(self) -> Option<&'a str> {
            self.0.string($id)
        }
    };
    ($id:literal $field:ident: scalars $of:tt) => {
        pub(crate) fn $field(self) -> Scalars<'a, $of> {
            self.0.scalars($id)
        }
    };
    ($id:literal $field:ident: table $of:tt) => {
        pub(crate) fn $field(self) -> Option<$of<'a>> {
            self.0.table($id)
        }
    };
    ($id:literal $field:ident: tables $of:tt) => {
        pub(crate) fn $field(self) -> Tables<'a, $of<'a>> {
            self.0.tables($id)
        }
    };
}

pub(crate) use {accessor, field_type, tables};

tables! {
    /// The root.
    ModelTable {
        0 version: scalar u32 = 0,
        1 operator_codes: tables OperatorCode,
        2 subgraphs: tables SubgraphTable,
        4 buffers: tables BufferTable,
    }

    /// Which operator a group of [`OperatorTable`]s runs.
    OperatorCode {
        0 deprecated_builtin_code: scalar i8 = 0,
        1 custom_code: string _,
        3 builtin_code: scalar i32 = 0,
    }

    /// A graph.
    SubgraphTable {
        0 tensors: tables TensorTable,
        1 inputs: scalars i32,
        2 outputs: scalars i32,
        3 operators: tables OperatorTable,
    }

    /// A value.
    TensorTable {
        0 shape: scalars i32,
        1 element_type: scalar i8 = 0,
        2 buffer: scalar u32 = 0,
        3 name: string _,
        4 quantization: table QuantizationTable,
        5 is_variable: scalar bool = false,
        6 has_sparsity: present _,
        7 shape_signature: scalars i32,
    }

    /// How integers of a tensor stand for real numbers.
    QuantizationTable {
        2 scale: scalars f32,
        3 zero_point: scalars i64,
        4 details_type: scalar u8 = 0,
        6 quantized_dimension: scalar i32 = 0,
    }

    /// Bytes of a constant: inside the flatbuffer, or in a range behind it.
    BufferTable {
        0 data: scalars u8,
        1 offset: scalar u64 = 0,
        2 size: scalar u64 = 0,
    }
}

/// One operator of a graph. Written out because its options are a union, whose table is told by
/// another field.
#[derive(Clone, Copy)]
pub(crate) struct OperatorTable<'a>(Table<'a>);

impl<'a> View<'a> for OperatorTable<'a> {
    fn of(table: Table<'a>) -> Self {
        OperatorTable(table)
    }
}

impl<'a> OperatorTable<'a> {
    accessor!(0 opcode_index: scalar u32 = 0);
    accessor!(1 inputs: scalars i32);
    accessor!(2 outputs: scalars i32);
    accessor!(3 options_type: scalar u8 = 0);
    accessor!(5 custom_options: scalars u8);
    accessor!(8 intermediates: scalars i32);

    /// The options as the table that the operator needs.
    ///
    /// `None` when the file has options of another kind. An operator without any options has the
    /// defaults of all fields, as in the original.
    pub(crate) fn options<O: Options<'a>>(self) -> Option<O> {
        match self.options_type() {
            0 => Some(O::of(Table::EMPTY)),
            code if code == O::CODE => Some(self.0.table(4).unwrap_or_else(|| O::of(Table::EMPTY))),
            _ => None,
        }
    }
}

impl Verifiable for OperatorTable<'_> {
    fn run_verifier(verifier: &mut Verifier<'_, '_>, at: usize) -> Result<(), InvalidFlatbuffer> {
        verifier
            .visit_table(at)?
            .visit_field::<u32>("opcode_index", 4, false)?
            .visit_field::<ForwardsUOffset<Vector<'_, i32>>>("inputs", 6, false)?
            .visit_field::<ForwardsUOffset<Vector<'_, i32>>>("outputs", 8, false)?
            .visit_union::<u8, _>(
                "builtin_options_type",
                10,
                "builtin_options",
                12,
                false,
                verify_options,
            )?
            .visit_field::<ForwardsUOffset<Vector<'_, u8>>>("custom_options", 14, false)?
            .visit_field::<ForwardsUOffset<Vector<'_, i32>>>("intermediates", 20, false)?
            .finish();
        Ok(())
    }
}
