/// The sizes of the texts of a picture.
///
/// The program that shows it chooses the font, so widths are estimates on the safe side.
enum PictureText {
    static let rowHeight = 20.0
    static let fontSize = 12.0
    static let titleSize = 14.0
    private static let padding = 12.0

    static func titleHeight(of box: ModelPicture.Box) -> Double { box.subtitle.isEmpty ? 30 : 44 }

    static func size(of box: ModelPicture.Box) -> (width: Double, height: Double) {
        let rows = box.rows.map { width($0.name, fontSize) + width($0.note, fontSize) + 28 }
        let title = max(width(box.name, titleSize) * 1.1, width(box.subtitle, fontSize))
        let widest = max(title, rows.max() ?? 0, 96)
        let body = box.rows.isEmpty ? 8 : Double(box.rows.count) * rowHeight + 10
        return (widest + padding * 2, titleHeight(of: box) + body)
    }

    /// The middle of a row, from the top of its box.
    static func middle(ofRow row: Int, in box: ModelPicture.Box) -> Double {
        titleHeight(of: box) + 5 + (Double(row) + 0.5) * rowHeight
    }

    static func width(_ text: String, _ size: Double) -> Double {
        text.unicodeScalars.reduce(0) { $0 + width(of: $1) } * size
    }

    private static func width(of scalar: Unicode.Scalar) -> Double {
        switch scalar {
        case "i", "j", "l", "I", ".", ",", ":", ";", "'", "|", "!", " ", "(", ")": 0.36
        case "f", "r", "t": 0.43
        case "m", "w", "M", "W", "@": 0.95
        case "A"..."Z", "_": 0.72
        case "\u{2E80}"...: 1.05
        default: 0.64
        }
    }
}
