import Foundation

/// Parses a model's XML into a small tree of elements and attributes.
///
/// It skips text between elements, except for mapping models.
///
/// Foundation's parser stops the program on some damaged files, so this one is used. It reads Xcode's files and all
/// similar XML. It refuses parts that no model has: document type and entity declarations, deep nesting, and encodings
/// other than UTF-8. Time and memory are in proportion to the length of the file, for any contents.
package struct ModelXMLParser {
    private static let maximumDepth = 32
    private static let maximumElements = 200_000

    private let bytes: [UInt8]
    private var position = 0
    private var line = 1
    private var countedUpTo = 0
    private let form: Form

    /// The parts of a file beside elements and attributes.
    package enum Form {
        /// There are no relevant ones: models.
        case attributes
        /// There is text in elements, and a document type without declarations: the XML stores of mapping models.
        case text
    }

    private init(_ bytes: [UInt8], _ form: Form) {
        self.bytes = bytes
        self.form = form
    }

    /// Returns the root element.
    package static func parse(_ data: Data, _ form: Form = .attributes) throws(ModelError) -> ModelXMLElement {
        var bytes = [UInt8](data)
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
        guard !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else {
            throw ModelError(.malformed, "it is not UTF-8 text")
        }
        var parser = ModelXMLParser(bytes, form)
        return try parser.document()
    }

    // MARK: - Structure

    private mutating func document() throws(ModelError) -> ModelXMLElement {
        if skip("<?xml") { try checkDeclaration() }
        var root: ModelXMLElement?
        var stack: [ModelXMLElement] = []
        var count = 0
        while try skipToTag(in: stack.last) {
            if skip("</") {
                let name = try name()
                skipSpace()
                guard let open = stack.popLast(), open.name == name, skip(">") else { throw malformed() }
                continue
            }
            position += 1
            count += 1
            guard stack.count < Self.maximumDepth, count <= Self.maximumElements else {
                throw ModelError(
                    .malformed,
                    line: currentLine(),
                    "it has too many elements, or nests them too deeply"
                )
            }
            let (element, isClosed) = try element()
            if let parent = stack.last {
                parent.append(element)
            } else if root == nil {
                root = element
            } else {
                throw malformed()
            }
            if !isClosed { stack.append(element) }
        }
        guard let root, stack.isEmpty else { throw malformed() }
        return root
    }

    /// Reads the rest of `<?xml … ?>`.
    private mutating func checkDeclaration() throws(ModelError) {
        let start = position
        try skipPast("?>")
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        guard let key = text.range(of: "encoding") else { return }
        let quoted = text[key.upperBound...].split(
            maxSplits: 2,
            omittingEmptySubsequences: false,
            whereSeparator: { $0 == "\"" || $0 == "'" }
        )
        guard quoted.count == 3, quoted[0].allSatisfy({ $0 == "=" || $0.isWhitespace }) else { return }
        guard quoted[1].lowercased() == "utf-8" else {
            throw ModelError(.malformed, "its encoding is \(quoted[1]); only UTF-8 is read")
        }
    }

    /// Moves to the next tag, past comments, processing instructions and text; returns `false` at the end of the file.
    ///
    /// If text is relevant, it is added to the enclosing element.
    private mutating func skipToTag(in element: ModelXMLElement?) throws(ModelError) -> Bool {
        var text: [UInt8] = []
        defer { if !text.isEmpty { element?.append(text: String(decoding: text, as: UTF8.self)) } }
        while position < bytes.count {
            if bytes[position] != UInt8(ascii: "<") {
                // There may be text outside of the root element, but only white space.
                guard element != nil || Self.isSpace(bytes[position]) else { throw malformed() }
                position += 1
                guard form == .text, element != nil else { continue }
                if bytes[position - 1] == UInt8(ascii: "&") {
                    text += try reference().utf8
                } else {
                    text.append(bytes[position - 1])
                }
            } else if skip("<!--") {
                try skipPast("-->")
            } else if skip("<![CDATA[") {
                guard element != nil else { throw malformed() }
                let start = position
                try skipPast("]]>")
                if form == .text { text += bytes[start..<position - 3] }
            } else if skip("<?") {
                try skipPast("?>")
            } else if form == .text, element == nil, skip("<!DOCTYPE") {
                try skipDocumentType()
            } else if skip("<!") {
                throw ModelError(
                    .malformed,
                    line: currentLine(),
                    "it has a document type or entity declaration, which no model needs"
                )
            } else {
                return true
            }
        }
        return false
    }

    /// Reads the rest of a document type without declarations.
    ///
    /// A file that it names is not read.
    private mutating func skipDocumentType() throws(ModelError) {
        let start = position
        try skipPast(">")
        guard !bytes[start..<position].contains(where: { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "<") }) else {
            throw ModelError(.malformed, line: currentLine(), "it has entity declarations, which no model needs")
        }
    }

    /// Reads the rest of a start tag.
    private mutating func element() throws(ModelError) -> (element: ModelXMLElement, isClosed: Bool) {
        let name = try name()
        let line = currentLine()
        var attributes: [String: String] = [:]
        while true {
            let hasSpace = skipSpace()
            let isClosed = skip("/>")
            if isClosed || skip(">") {
                return (ModelXMLElement(name: name, attributes: attributes, line: line), isClosed)
            }
            guard hasSpace else { throw malformed() }
            let attribute = try self.name()
            skipSpace()
            guard skip("=") else { throw malformed() }
            skipSpace()
            guard attributes.updateValue(try value(), forKey: attribute) == nil else { throw malformed() }
        }
    }

    // MARK: - Names and values

    private mutating func name() throws(ModelError) -> String {
        let start = position
        while position < bytes.count, Self.isPartOfName(bytes[position]) {
            position += 1
        }
        guard position > start, !"-.0123456789".utf8.contains(bytes[start]) else { throw malformed() }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// Reads an attribute's value in quotes.
    private mutating func value() throws(ModelError) -> String {
        guard position < bytes.count, [UInt8(ascii: "\""), UInt8(ascii: "'")].contains(bytes[position]) else {
            throw malformed()
        }
        let quote = bytes[position]
        position += 1
        var value: [UInt8] = []
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case quote: return String(decoding: value, as: UTF8.self)
            case UInt8(ascii: "<"): throw malformed()
            case UInt8(ascii: "&"): value += try reference().utf8
            // XML requires this: white space in a value is a space, unless it is written as a reference.
            case 9, 10: value.append(0x20)
            case 13: if position >= bytes.count || bytes[position] != 10 { value.append(0x20) }
            default: value.append(byte)
            }
        }
        throw malformed()
    }

    /// Reads a character reference, after its `&`.
    private mutating func reference() throws(ModelError) -> String {
        let start = position
        while position < bytes.count, position - start < 12, bytes[position] != UInt8(ascii: ";") {
            position += 1
        }
        guard position < bytes.count, bytes[position] == UInt8(ascii: ";") else { throw malformed() }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        position += 1
        switch text {
        case "lt": return "<"
        case "gt": return ">"
        case "amp": return "&"
        case "quot": return "\""
        case "apos": return "'"
        default:
            guard text.hasPrefix("#") else { throw malformed() }
            let number = text.hasPrefix("#x") ? UInt32(text.dropFirst(2), radix: 16) : UInt32(text.dropFirst())
            guard let scalar = number.flatMap(Unicode.Scalar.init), scalar.value != 0 else { throw malformed() }
            return String(scalar)
        }
    }

    // MARK: - Bytes

    private mutating func skip(_ text: StaticString) -> Bool {
        let matches = text.withUTF8Buffer { bytes[position...].starts(with: $0) }
        if matches { position += text.utf8CodeUnitCount }
        return matches
    }

    private mutating func skipPast(_ text: StaticString) throws(ModelError) {
        while !skip(text) {
            guard position < bytes.count else { throw malformed() }
            position += 1
        }
    }

    @discardableResult
    private mutating func skipSpace() -> Bool {
        let start = position
        while position < bytes.count, Self.isSpace(bytes[position]) {
            position += 1
        }
        return position > start
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (9...10).contains(byte) || byte == 13 }

    /// Whether a byte is part of a name: letters, digits, `_`, `-`, `.`, `:`, and all beyond ASCII.
    private static func isPartOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: ":"): true
        case UInt8(ascii: "-"), UInt8(ascii: "."), 0x80...: true
        default: false
        }
    }

    /// The line of the current position.
    ///
    /// The positions must increase from call to call, so that the file is counted once.
    private mutating func currentLine() -> Int {
        line += bytes[countedUpTo..<max(position, countedUpTo)].count { $0 == 10 }
        countedUpTo = max(position, countedUpTo)
        return line
    }

    private mutating func malformed() -> ModelError {
        ModelError(.malformed, line: currentLine(), "it is not well-formed XML")
    }
}
