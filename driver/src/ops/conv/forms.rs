//! The forms of operand types that convolutions share.

/// The forms of a convolution: every type, with explicit and with implicit padding.
///
/// Each form is `[types after the bias] counts [lengths of the whole list, with their first
/// version]`; `since` is the operation's first version. Half floats and per-channel filters came
/// with 1.2, signed values with 1.3.
macro_rules! conv_forms {
    (explicit [$($explicit:expr),*] counts $explicit_counts:expr,
     implicit [$($implicit:expr),*] counts $implicit_counts:expr,
     since $since:ident,) => {{
        use burst_hal::HalVersion::*;
        use crate::op::TypeSet;
        use crate::op::types::{BOOL, I32, TF16, TF32, TI32, TQ8, TQ8PC, TQ8S};
        const SIGNED: TypeSet = TQ8S.or(TQ8PC);
        &[
            Form::new($since, &[TF32, TF32, TF32, $($explicit),*], &[TF32]).counts(&$explicit_counts),
            Form::new($since, &[TF32, TF32, TF32, $($implicit),*], &[TF32]).counts(&$implicit_counts),
            Form::new($since, &[TQ8, TQ8, TI32, $($explicit),*], &[TQ8]).counts(&$explicit_counts),
            Form::new($since, &[TQ8, TQ8, TI32, $($implicit),*], &[TQ8]).counts(&$implicit_counts),
            Form::new(V1_2, &[TF16, TF16, TF16, $($explicit),*], &[TF16]).counts(&$explicit_counts),
            Form::new(V1_2, &[TF16, TF16, TF16, $($implicit),*], &[TF16]).counts(&$implicit_counts),
            Form::new(V1_2, &[TQ8, TQ8PC, TI32, $($explicit),*], &[TQ8]).counts(&$explicit_counts),
            Form::new(V1_2, &[TQ8, TQ8PC, TI32, $($implicit),*], &[TQ8]).counts(&$implicit_counts),
            Form::new(V1_3, &[TQ8S, SIGNED, TI32, $($explicit),*], &[TQ8S]).counts(&$explicit_counts),
            Form::new(V1_3, &[TQ8S, SIGNED, TI32, $($implicit),*], &[TQ8S]).counts(&$implicit_counts),
        ]
    }};
}

pub(super) use conv_forms;
