import Foundation

/// A JSON value that keeps the order of its members.
indirect enum JSON: Equatable {
    case null
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    /// A number with digits that must not change.
    case number(String)
    case string(String)
    case array([JSON])
    case object([Member])

    struct Member: Equatable {
        let name: String
        let value: JSON

        init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    /// The value on one line.
    var text: String {
        var text = ""
        write(to: &text)
        return text
    }

    private func write(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        // JSON has no text for infinity.
        case .double(let value): text += value.isFinite ? Self.digits(of: value) : "null"
        case .number(let digits): text += digits
        case .string(let value): Self.write(value, to: &text)
        case .array(let values):
            Self.write(values, between: ("[", "]"), to: &text) { $0.write(to: &$1) }
        case .object(let members):
            Self.write(members, between: ("{", "}"), to: &text) { member, text in
                Self.write(member.name, to: &text)
                text += ": "
                member.value.write(to: &text)
            }
        }
    }

    private static func write<Element>(
        _ elements: [Element],
        between brackets: (String, String),
        to text: inout String,
        each: (Element, inout String) -> Void
    ) {
        text += brackets.0
        for (index, element) in elements.enumerated() {
            if index > 0 { text += ", " }
            each(element, &text)
        }
        text += brackets.1
    }

    /// The shortest digits that read back as the same number, without `.0` for a whole number.
    private static func digits(of value: Double) -> String {
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    private static func write(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            // The two separators are legal in JSON, but end a line for some readers of lines.
            case "\u{0}"..."\u{1F}", "\u{7F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
