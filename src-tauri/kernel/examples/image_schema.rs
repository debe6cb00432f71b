//! Prints the JSON schema of an image: `docs/image.schema.json`.

fn main() {
    println!("{:#}", steward_kernel::image::Image::schema());
}
