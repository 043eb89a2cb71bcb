import Foundation

/// Parses one stanza, in one pass over its bytes.
///
/// Only the fields that ``PackageRecord`` keeps become strings: they are a third of an index.
struct StanzaParser {
    private enum Field: String, CaseIterable {
        case package = "Package"
        case version = "Version"
        case architecture = "Architecture"
        case section = "Section"
        case priority = "Priority"
        case maintainer = "Maintainer"
        case description = "Description"
        case homepage = "Homepage"
        case installedSize = "Installed-Size"
        case size = "Size"
        case fileName = "Filename"
        case sha256 = "SHA256"
        case status = "Status"
        case depends = "Depends"
        case preDepends = "Pre-Depends"
        case recommends = "Recommends"
    }

    /// The known fields by the length of their names, so that the length alone excludes most of the others.
    private static let fieldsByLength: [[(name: [UInt8], field: Field)]] = {
        let longest = Field.allCases.map(\.rawValue.utf8.count).max() ?? 0
        var table = [[(name: [UInt8], field: Field)]](repeating: [], count: longest + 1)
        for field in Field.allCases {
            table[field.rawValue.utf8.count].append((Array(field.rawValue.lowercased().utf8), field))
        }
        return table
    }()

    private let bytes: UnsafeRawBufferPointer
    private let firstLine: Int
    private var record = PackageRecord(name: "", version: "", architecture: "")
    private var seen: Set<Field> = []

    /// Returns the package that the bytes of a stanza describe, or the fact that it is not installed.
    static func parse(
        _ bytes: UnsafeRawBufferPointer,
        firstLine: Int
    ) throws(MalformedStanza) -> ControlFileReader.Item {
        var parser = StanzaParser(bytes: bytes, firstLine: firstLine)
        return try parser.parse()
    }

    private init(bytes: UnsafeRawBufferPointer, firstLine: Int) {
        self.bytes = bytes
        self.firstLine = firstLine
    }

    // MARK: - Lines

    private mutating func parse() throws(MalformedStanza) -> ControlFileReader.Item {
        var line = firstLine
        var start = 0
        // The field whose lines are being collected. `field` is nil if the field is not needed.
        var open: (field: Field?, value: Range<Int>, line: Int)?

        while start < bytes.count {
            let end = endOfLine(from: start)
            if bytes[start] == UInt8(ascii: " ") || bytes[start] == UInt8(ascii: "\t") {
                guard let current = open else {
                    throw MalformedStanza(line: line, reason: .neitherFieldNorContinuation)
                }
                open = (current.field, current.value.lowerBound..<end, current.line)
            } else {
                if let current = open { try take(current.field, current.value, line: current.line) }
                guard let colon = endOfName(in: start..<end) else {
                    throw MalformedStanza(line: line, reason: .neitherFieldNorContinuation)
                }
                open = (field(named: start..<colon), colon + 1..<end, line)
            }
            start = end + 1
            line += 1
        }
        if let current = open { try take(current.field, current.value, line: current.line) }
        return try finish()
    }

    private func endOfLine(from start: Int) -> Int {
        guard let base = bytes.baseAddress, let found = memchr(base + start, 0x0A, bytes.count - start) else {
            return bytes.count
        }
        return UnsafeRawPointer(found) - base
    }

    /// The position of the colon after a field's name; `nil` if the line does not start with a name.
    private func endOfName(in line: Range<Int>) -> Int? {
        for position in line {
            switch bytes[position] {
            case UInt8(ascii: ":"): return position > line.lowerBound ? position : nil
            // The byte is printable, and neither a blank nor a colon.
            case 0x21...0x7E: continue
            default: return nil
            }
        }
        return nil
    }

    private func field(named range: Range<Int>) -> Field? {
        guard range.count < Self.fieldsByLength.count else { return nil }
        for candidate in Self.fieldsByLength[range.count]
        where zip(bytes[range], candidate.name).allSatisfy({ lowercased($0) == $1 }) {
            return candidate.field
        }
        return nil
    }

    private func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    // MARK: - Fields

    private mutating func take(_ field: Field?, _ value: Range<Int>, line: Int) throws(MalformedStanza) {
        guard let field else { return }
        guard seen.insert(field).inserted else {
            throw MalformedStanza(line: line, reason: .repeatedField(field.rawValue))
        }
        switch field {
        case .package: record.name = text(value)
        case .version: record.version = text(value)
        case .architecture: record.architecture = text(value)
        case .section: record.section = optionalText(value)
        case .priority: record.priority = optionalText(value)
        case .maintainer: record.maintainer = MaintainerAddress(text(value))
        case .description: record.summary = text(value.lowerBound..<endOfLine(from: value.lowerBound))
        case .homepage: record.homepage = optionalText(value)
        case .installedSize: record.installedSize = try number(value, unit: 1024, field, line: line)
        case .size: record.downloadSize = try number(value, unit: 1, field, line: line)
        case .fileName: record.fileName = optionalText(value)
        case .sha256: record.sha256 = optionalText(value)
        case .status: record.status = optionalText(value)
        case .depends, .preDepends:
            DependencyList.appendNames(in: UnsafeRawBufferPointer(rebasing: bytes[value]), to: &record.dependencies)
        case .recommends:
            DependencyList.appendNames(in: UnsafeRawBufferPointer(rebasing: bytes[value]), to: &record.recommendations)
        }
    }

    private mutating func finish() throws(MalformedStanza) -> ControlFileReader.Item {
        guard !record.name.isEmpty else { throw MalformedStanza(line: firstLine, reason: .missingField("Package")) }
        if record.version.isEmpty || record.architecture.isEmpty {
            if record.status?.hasSuffix(" not-installed") == true { return .notInstalled(name: record.name) }
            throw MalformedStanza(
                line: firstLine,
                reason: .missingField(record.version.isEmpty ? "Version" : "Architecture")
            )
        }
        record.dependencies.removeRepeats()
        record.recommendations.removeRepeats()
        return .package(record)
    }

    /// The bytes as text, without surrounding blanks.
    ///
    /// Bytes that are not UTF-8 become replacement characters.
    private func text(_ range: Range<Int>) -> String {
        var start = range.lowerBound
        var end = min(range.upperBound, bytes.count)
        while start < end, isBlank(bytes[start]) { start += 1 }
        while end > start, isBlank(bytes[end - 1]) { end -= 1 }
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    private func optionalText(_ range: Range<Int>) -> String? {
        let text = text(range)
        return text.isEmpty ? nil : text
    }

    private func number(
        _ range: Range<Int>,
        unit: Int64,
        _ field: Field,
        line: Int
    ) throws(MalformedStanza) -> Int64 {
        guard let value = Int64(text(range)), value >= 0,
            case let (bytes, false) = value.multipliedReportingOverflow(by: unit)
        else {
            throw MalformedStanza(line: line, reason: .notANumber(field: field.rawValue))
        }
        return bytes
    }

    private func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || (0x09...0x0D).contains(byte)
    }
}
