//! What a model's file says of its inputs and outputs beside the graph: TensorFlow Lite's metadata schema, version 1.
//! It lies as a flatbuffer of its own in a buffer of the model.

use flatbuffers::{ForwardsUOffset, InvalidFlatbuffer, Vector, Verifiable, Verifier};

use super::{BufferTable, Scalars, Table, Tables, View, accessor, field_type, tables};

tables! {
    /// The root of a model, as far as it leads to metadata.
    NamedBuffers {
        4 buffers: tables BufferTable,
        6 metadata: tables NamedBuffer,
    }

    /// A buffer with a name.
    NamedBuffer {
        0 name: string _,
        1 buffer: scalar u32 = 0,
    }

    /// The root of the metadata.
    ModelMetadata {
        3 subgraphs: tables SubgraphMetadata,
    }

    /// Of a graph.
    SubgraphMetadata {
        2 inputs: tables TensorMetadataTable,
        3 outputs: tables TensorMetadataTable,
    }

    /// Of a tensor at its boundary.
    TensorMetadataTable {
        0 name: string _,
        3 content: table ContentTable,
        4 process_units: tables ProcessUnit,
        6 files: tables AssociatedFile,
    }

    /// A file that is packed behind the model.
    AssociatedFile {
        0 name: string _,
        2 kind: scalar i8 = 0,
        3 locale: string _,
    }

    /// `(value - mean) / std`, for all channels or for each.
    NormalizationOptions {
        0 mean: scalars f32,
        1 std: scalars f32,
    }

    /// The least score that counts.
    ScoreThresholdingOptions {
        0 threshold: scalar f32 = 0.0,
    }

    /// Of sound.
    AudioProperties {
        0 sample_rate: scalar u32 = 0,
    }
}

/// Declares a table of which one field is a union: field 0 says which table field 1 is.
macro_rules! unions {
    ($($(#[$doc:meta])* $view:ident { $($code:literal $field:ident: $of:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $view<'a>(Table<'a>);

        impl<'a> View<'a> for $view<'a> {
            fn of(table: Table<'a>) -> Self {
                $view(table)
            }
        }

        impl<'a> $view<'a> {
            $(
                pub(crate) fn $field(self) -> Option<$of<'a>> {
                    (self.0.scalar::<u8>(0, 0) == $code).then(|| self.0.table(1))?
                }
            )*
        }

        impl Verifiable for $view<'_> {
            fn run_verifier(verifier: &mut Verifier<'_, '_>, at: usize) -> Result<(), InvalidFlatbuffer> {
                verifier
                    .visit_table(at)?
                    .visit_union::<u8, _>("type", 4, "value", 6, false, |code, verifier, at| match code {
                        $($code => verifier.verify_union_variant::<ForwardsUOffset<$of<'_>>>(stringify!($of), at),)*
                        _ => Ok(()),
                    })?
                    .finish();
                Ok(())
            }
        }
    )*};
}

unions! {
    /// What a tensor holds.
    ContentTable {
        4 audio: AudioProperties,
    }

    /// What is done to a tensor before it goes in, or after it came out.
    ProcessUnit {
        1 normalization: NormalizationOptions,
        3 threshold: ScoreThresholdingOptions,
    }
}
