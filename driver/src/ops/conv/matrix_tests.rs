//! The matrix kernels against the reference, on shapes and values that look random.

use crate::kernels::Isa;
use crate::kernels::simd::on_both_widths;
use crate::op::OpDef;
use crate::ops::conv::test_support::{
    Case, Numbers, Tensor, assert_close, assert_same_without_constants, kinds,
};
use crate::ops::conv::{conv_2d, fully_connected};

/// A convolution with random sizes and parameters; `kind` chooses the types.
fn convolution(numbers: &mut Numbers, kind: usize) -> Case {
    let (batches, channels) = (1 + numbers.below(2), 1 + numbers.below(20));
    let [down, across] = [1 + numbers.below(3), 1 + numbers.below(3)];
    let dilations = numbers.of(&[[1, 1], [1, 1], [2, 1], [1, 2]]);
    let span = |taps: u32, dilation: u32| (taps - 1) * dilation + 1;
    let height = span(down, dilations[0]) + numbers.below(8);
    let width = span(across, dilations[1]) + numbers.below(8);
    let units = 1 + numbers.below(40);
    let parameters = {
        let stride = [1 + numbers.below(2), 1 + numbers.below(2)];
        let mut list = match numbers.below(3) {
            0 => vec![1],
            1 => vec![2],
            _ => vec![
                numbers.below(span(across, dilations[1])),
                numbers.below(span(across, dilations[1])),
                numbers.below(span(down, dilations[0])),
                numbers.below(span(down, dilations[0])),
            ],
        };
        list.extend([stride[0], stride[1], numbers.below(4)]);
        let mut rest: Vec<Tensor> = list.into_iter().map(Tensor::uint).collect();
        rest.push(Tensor::flag(false));
        rest.extend([dilations[1], dilations[0]].map(Tensor::uint));
        rest
    };
    let images = [batches, height, width, channels];
    let filter = [units, down, across, channels];
    kinds::case(&conv_2d::DEF, numbers, kind, &images, (&filter, units, 0), parameters)
}

fn layer(numbers: &mut Numbers, kind: usize) -> Case {
    let def: &'static OpDef = &fully_connected::DEF;
    let (batches, inputs, units) =
        (1 + numbers.below(5), 1 + numbers.below(300), 1 + numbers.below(70));
    let rest = vec![Tensor::uint(numbers.below(4))];
    kinds::case(def, numbers, kind, &[batches, inputs], (&[units, inputs], units, 0), rest)
}

fn compare(case: &Case, what: &str) {
    let want = case.reference().unwrap();
    // This one leaves the matrix library as the best there is.
    let library =
        Isa { avx_vnni: false, avx512: false, dotprod: false, i8mm: false, ..Isa::detect() };
    on_both_widths(|| {
        for isa in Isa::each_here().chain([library]) {
            let got = case.fast(isa).unwrap().expect("a kernel for constant weights");
            assert_close(case, &got, &want, what);
            assert_same_without_constants(case, isa, &got, what);
        }
    });
}

#[test]
fn convolutions_equal_the_reference() {
    for kind in 0..kinds::COUNT {
        for seed in 0..60 {
            let case = convolution(&mut Numbers::new(seed), kind);
            compare(&case, &format!("kind {kind}, seed {seed}"));
        }
    }
}

#[test]
fn layers_equal_the_reference() {
    for kind in kinds::WITHOUT_CHANNELS {
        for seed in 0..40 {
            let case = layer(&mut Numbers::new(seed), kind);
            compare(&case, &format!("kind {kind}, seed {seed}"));
        }
    }
}

#[test]
fn several_tiles_equal_the_reference() {
    // Over 256 KiB of sums, so that the work is cut; 1x1 in place, and 2x2 gathered.
    for taps in [1, 2] {
        for kind in 0..kinds::COUNT {
            let numbers = &mut Numbers::new(7);
            let rest = [1, 1, 1, 0].map(Tensor::uint).to_vec();
            let filter = [65, taps, taps, 3];
            let images = [2, 31, 33, 3];
            let case = kinds::case(&conv_2d::DEF, numbers, kind, &images, (&filter, 65, 0), rest);
            compare(&case, &format!("{taps} taps, kind {kind}"));
        }
    }
}

#[test]
fn few_pixels_of_many_channels_equal_the_reference() {
    // Up to 36 pixels, and 256 KiB of weights for more: what several threads cut by channels.
    for (height, width, channels, units) in
        [(2, 3, 70, 200), (1, 2, 5, 65), (4, 6, 33, 97), (7, 7, 500, 530), (7, 7, 40, 130)]
    {
        for taps in [1, 3] {
            for kind in 0..kinds::COUNT {
                let numbers = &mut Numbers::new(3);
                let rest = [1, 1, 1, 0].map(Tensor::uint).to_vec();
                let channels = if taps == 1 { channels } else { channels.min(60) };
                let (filter, images) =
                    ([units, taps, taps, channels], [1, height, width, channels]);
                let filter = (filter.as_slice(), units, 0);
                let case = kinds::case(&conv_2d::DEF, numbers, kind, &images, filter, rest);
                compare(
                    &case,
                    &format!("{height} x {width} x {channels}, {units}, {taps}, {kind}"),
                );
            }
        }
    }
}

#[test]
fn nothing_is_prepared_where_planes_are_apart() {
    let mut case = convolution(&mut Numbers::new(1), 0);
    let layout = case.inputs.len() - 3;
    case.inputs[layout] = Tensor::flag(true);
    assert_eq!(case.fast(Isa::detect()), Ok(None));
    assert_eq!(case.fast_without(Isa::detect(), &[1]), Ok(None));
}
