//! Parameters of builtin operators: where the runtime's structures have what the schema has as options.
//!
//! Offsets are those of the structures of TFLite's `builtin_op_data.h`, in which fields are only ever added at
//! the end; what was added later is read only of nodes whose version has it.

use burst_tflite::{GivenField, GivenValue};

/// What no option has: the importer refuses it by name.
const NO_CODE: i8 = i8::MAX;
/// Most integers of a list in a structure.
const LIST_MAX: usize = 8;

/// Parameters of an operator.
#[derive(Debug)]
pub(crate) struct Parameters {
    /// Operators that have them.
    codes: &'static [i32],
    /// The code of their table in the schema's union of options.
    table: u8,
    fields: &'static [Field],
}

#[derive(Debug)]
struct Field {
    /// In the schema's table.
    number: u16,
    /// In the structure.
    offset: usize,
    kind: Kind,
    /// The first version of the operator that has it.
    since: i32,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// An `int` code that the schema has as one byte.
    Code,
    /// The same of a padding scheme, which has one code more in the structure: 0, for none.
    Padding,
    Int,
    Float,
    Bool,
    /// Up to eight integers, with their count behind them.
    Ints,
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Kind::Code | Kind::Padding | Kind::Int | Kind::Float => 4,
            Kind::Bool => 1,
            Kind::Ints => 4 * (LIST_MAX + 1),
        }
    }
}

const fn field(number: u16, offset: usize, kind: Kind) -> Field {
    Field { number, offset, kind, since: 1 }
}

const fn since(version: i32, number: u16, offset: usize, kind: Kind) -> Field {
    Field { number, offset, kind, since: version }
}

const ACTIVATION: &[Field] = &[field(0, 0, Kind::Code)];
const INT: &[Field] = &[field(0, 0, Kind::Int)];
const FLOAT: &[Field] = &[field(0, 0, Kind::Float)];

/// One row per structure.
static ALL: &[Parameters] = &[
    // CONV_2D
    Parameters {
        codes: &[3],
        table: 1,
        fields: &[
            field(0, 0, Kind::Padding),
            field(1, 4, Kind::Int),
            field(2, 8, Kind::Int),
            field(3, 12, Kind::Code),
            field(4, 16, Kind::Int),
            field(5, 20, Kind::Int),
        ],
    },
    // DEPTHWISE_CONV_2D
    Parameters {
        codes: &[4],
        table: 2,
        fields: &[
            field(0, 0, Kind::Padding),
            field(1, 4, Kind::Int),
            field(2, 8, Kind::Int),
            field(3, 12, Kind::Int),
            field(4, 16, Kind::Code),
            field(5, 20, Kind::Int),
            field(6, 24, Kind::Int),
        ],
    },
    // AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D
    Parameters {
        codes: &[1, 12, 17],
        table: 5,
        fields: &[
            field(0, 0, Kind::Padding),
            field(1, 4, Kind::Int),
            field(2, 8, Kind::Int),
            field(3, 12, Kind::Int),
            field(4, 16, Kind::Int),
            field(5, 20, Kind::Code),
        ],
    },
    // SVDF
    Parameters {
        codes: &[27],
        table: 6,
        fields: &[field(0, 0, Kind::Int), field(1, 4, Kind::Code)],
    },
    // RNN
    Parameters { codes: &[24], table: 7, fields: ACTIVATION },
    // FULLY_CONNECTED
    Parameters {
        codes: &[9],
        table: 8,
        fields: &[field(0, 0, Kind::Code), field(1, 4, Kind::Code), field(2, 8, Kind::Bool)],
    },
    // SOFTMAX
    Parameters { codes: &[25], table: 9, fields: FLOAT },
    // CONCATENATION
    Parameters {
        codes: &[2],
        table: 10,
        fields: &[field(0, 0, Kind::Int), field(1, 4, Kind::Code)],
    },
    // ADD
    Parameters { codes: &[0], table: 11, fields: ACTIVATION },
    // L2_NORMALIZATION
    Parameters { codes: &[11], table: 12, fields: ACTIVATION },
    // RESIZE_BILINEAR
    Parameters {
        codes: &[23],
        table: 15,
        fields: &[field(2, 0, Kind::Bool), field(3, 1, Kind::Bool)],
    },
    // RESHAPE
    Parameters { codes: &[22], table: 17, fields: &[field(0, 0, Kind::Ints)] },
    // SPACE_TO_DEPTH
    Parameters { codes: &[26], table: 19, fields: INT },
    // MUL
    Parameters { codes: &[18], table: 21, fields: ACTIVATION },
    // GATHER
    Parameters {
        codes: &[36],
        table: 23,
        fields: &[field(0, 0, Kind::Int), field(1, 4, Kind::Int)],
    },
    // MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL
    Parameters {
        codes: &[40, 74, 81, 82, 89, 91, 140],
        table: 27,
        fields: &[field(0, 0, Kind::Bool)],
    },
    // SUB
    Parameters { codes: &[41], table: 28, fields: ACTIVATION },
    // DIV
    Parameters { codes: &[42], table: 29, fields: ACTIVATION },
    // SQUEEZE
    Parameters { codes: &[43], table: 30, fields: &[field(0, 0, Kind::Ints)] },
    // STRIDED_SLICE
    Parameters {
        codes: &[45],
        table: 32,
        fields: &[
            field(0, 0, Kind::Int),
            field(1, 4, Kind::Int),
            field(2, 8, Kind::Int),
            field(3, 12, Kind::Int),
            field(4, 16, Kind::Int),
            since(8, 5, 20, Kind::Bool),
        ],
    },
    // SPLIT
    Parameters { codes: &[49], table: 35, fields: INT },
    // UNIDIRECTIONAL_SEQUENCE_LSTM
    Parameters {
        codes: &[44],
        table: 71,
        fields: &[
            field(0, 0, Kind::Code),
            field(1, 4, Kind::Float),
            field(2, 8, Kind::Float),
            field(3, 12, Kind::Bool),
            since(4, 5, 14, Kind::Bool),
        ],
    },
    // RESIZE_NEAREST_NEIGHBOR
    Parameters {
        codes: &[97],
        table: 74,
        fields: &[field(0, 0, Kind::Bool), field(1, 1, Kind::Bool)],
    },
    // LEAKY_RELU
    Parameters { codes: &[98], table: 75, fields: FLOAT },
    // DEPTH_TO_SPACE
    Parameters { codes: &[5], table: 94, fields: INT },
];

/// The parameters of this operator; `None` where no mapping reads any.
pub(crate) fn parameters(code: i32) -> Option<&'static Parameters> {
    ALL.iter().find(|one| one.codes.contains(&code))
}

impl Parameters {
    /// How many bytes of the structure are read of a node of this version.
    pub(crate) fn bytes(&self, version: i32) -> usize {
        self.fields(version).map(|field| field.offset + field.kind.bytes()).max().unwrap_or(0)
    }

    /// The table of the schema with the fields that these bytes say; `None` where there are too few.
    pub(crate) fn options(&self, version: i32, bytes: &[u8]) -> Option<(u8, Vec<GivenField>)> {
        let given = |field: &Field| {
            let value = value(field.kind, bytes.get(field.offset..)?)?;
            Some(GivenField { number: field.number, value })
        };
        let fields = self.fields(version).map(given).collect::<Option<_>>()?;
        Some((self.table, fields))
    }

    fn fields(&self, version: i32) -> impl Iterator<Item = &'static Field> + use<> {
        // Versions count from 1; a runtime that says less has the first.
        self.fields.iter().filter(move |field| field.since <= version.max(1))
    }
}

fn value(kind: Kind, bytes: &[u8]) -> Option<GivenValue> {
    Some(match kind {
        Kind::Code => GivenValue::Byte(i8::try_from(int(bytes)?).unwrap_or(NO_CODE)),
        Kind::Padding => {
            let code = int(bytes)?.checked_sub(1).and_then(|code| i8::try_from(code).ok());
            GivenValue::Byte(code.filter(|code| *code >= 0).unwrap_or(NO_CODE))
        }
        Kind::Int => GivenValue::Int(int(bytes)?),
        Kind::Float => GivenValue::Float(f32::from_bits(int(bytes)?.cast_unsigned())),
        Kind::Bool => GivenValue::Bool(*bytes.first()? != 0),
        Kind::Ints => {
            let count = usize::try_from(int(bytes.get(4 * LIST_MAX..)?)?).unwrap_or(0);
            let ints = (0..count.min(LIST_MAX)).map(|at| int(bytes.get(4 * at..)?));
            GivenValue::Ints(ints.collect::<Option<_>>()?)
        }
    })
}

fn int(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().map(|word| i32::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    #[test]
    fn a_structure_is_read_at_the_offsets_of_its_fields() {
        let conv = parameters(3).unwrap();
        assert_eq!(conv.bytes(1), 24);
        let (table, fields) = conv.options(1, &words(&[1, 2, 3, 1, 4, 5])).unwrap();
        let values: Vec<_> = fields.into_iter().map(|field| (field.number, field.value)).collect();
        assert_eq!(table, 1);
        assert_eq!(
            values,
            [
                (0, GivenValue::Byte(0)),
                (1, GivenValue::Int(2)),
                (2, GivenValue::Int(3)),
                (3, GivenValue::Byte(1)),
                (4, GivenValue::Int(4)),
                (5, GivenValue::Int(5)),
            ]
        );
    }

    #[test]
    fn a_padding_or_code_that_there_is_not_becomes_one_that_is_refused() {
        for padding in [0, -1, 500, i32::MIN] {
            let (_, fields) =
                parameters(3).unwrap().options(1, &words(&[padding, 1, 1, 999, 1, 1])).unwrap();
            assert_eq!(fields[0].value, GivenValue::Byte(NO_CODE), "{padding}");
            assert_eq!(fields[3].value, GivenValue::Byte(NO_CODE));
        }
    }

    #[test]
    fn what_was_added_later_is_read_of_later_versions_only() {
        for (code, old, new) in [(45, (7, 20), (8, 21)), (44, (3, 13), (4, 15))] {
            let found = parameters(code).unwrap();
            assert_eq!(found.bytes(old.0), old.1, "{code}");
            assert_eq!(found.bytes(new.0), new.1, "{code}");
            assert!(found.options(old.0, &vec![0; old.1]).is_some());
            assert!(found.options(new.0, &vec![0; old.1]).is_none(), "{code}: too few bytes");
        }
    }

    #[test]
    fn a_list_has_as_many_integers_as_its_count_says_and_never_more_than_there_is_room_for() {
        let reshape = parameters(22).unwrap();
        for (count, want) in [(0, 0), (2, 2), (8, 8), (900, 8), (-4, 0)] {
            let (_, fields) = reshape.options(1, &words(&[7, 7, 7, 7, 7, 7, 7, 7, count])).unwrap();
            assert_eq!(fields[0].value, GivenValue::Ints(vec![7; want]), "{count}");
        }
    }

    #[test]
    fn no_operator_has_two_rows() {
        let mut codes: Vec<i32> = ALL.iter().flat_map(|one| one.codes).copied().collect();
        let all = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), all);
        assert!(parameters(14).is_none(), "LOGISTIC has none");
    }
}
