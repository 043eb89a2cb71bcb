/// Writes the symbol names that the Swift compiler gives to accessors and methods.
///
/// It supports a part of the compiler's mangling: nominal and generic types, optionals, private names, and the
/// substitutions for parts that were written before, whole or as words of identifiers. A test compares it with the
/// compiler.
struct Mangler {
    private var buffer: [UInt8] = Array("$s".utf8)
    private var substitutions: [Key: Int] = [:]
    /// The positions in the buffer at which words begin, and their lengths.
    private var words: [(start: Int, length: Int)] = []
    private var last = LastSubstitution()

    /// A part that can be replaced by a substitution after it was written once.
    private enum Key: Hashable {
        case identifier(String)
        case type(MangledType)
    }

    /// The substitution at the end of the buffer, with which another one can be merged.
    private struct LastSubstitution {
        var position = 0
        var size = 0
        var count = 0
        var isStandard = false
    }

    private static let maximumWords = 26
    private static let maximumRepeats = 2048

    private init() {}

    /// The symbol of the getter or setter of a property.
    static func accessor(_ code: Character, of member: MangledMember, type: MangledType) -> String {
        var mangler = Mangler()
        mangler.append(member)
        mangler.append(type)
        mangler.append("v\(code)")
        return mangler.text
    }

    /// The symbol of a method that returns nothing, with the labels and types of its parameters.
    static func method(_ member: MangledMember, parameters: [(label: String?, type: MangledType)]) -> String {
        var mangler = Mangler()
        mangler.append(member)
        if parameters.contains(where: { $0.label != nil }) {
            for parameter in parameters {
                if let label = parameter.label { mangler.append(identifier: label) } else { mangler.append("_") }
            }
        } else {
            mangler.append("y")
        }
        mangler.append("y")
        let isTuple = parameters.count != 1 || parameters[0].label != nil
        for (index, parameter) in parameters.enumerated() {
            mangler.append(parameter.type)
            if isTuple, index == 0 { mangler.append("_") }
        }
        mangler.append(isTuple ? "tF" : "F")
        return mangler.text
    }

    private var text: String { String(decoding: buffer, as: UTF8.self) }

    // MARK: - Declarations and types

    private mutating func append(_ member: MangledMember) {
        append(.nominal(member.owner, []))
        if let module = member.extensionModule {
            append(module: module)
            append("E")
        }
        append(identifier: member.name)
        if let discriminator = member.discriminator {
            append(identifier: discriminator)
            append("LL")
        }
    }

    private mutating func append(_ type: MangledType) {
        switch type {
        case .any: append("yp")
        case .anyObject: append("yXl")
        case .optional(let wrapped):
            if appendSubstitution(.type(type)) { return }
            append(wrapped)
            append("Sg")
            add(.type(type))
        case .nominal(let name, []): append(name, type)
        case .nominal(let name, let arguments):
            if appendSubstitution(.type(type)) { return }
            append(name, .nominal(name, []))
            append("y")
            // Each enclosing type has a separate list of arguments, which is empty.
            for _ in sequence(first: name, next: \.outer).dropFirst() { append("_") }
            for argument in arguments { append(argument) }
            append("G")
            add(.type(type))
        }
    }

    private mutating func append(_ name: MangledName, _ type: MangledType) {
        if let standard = name.standardSubstitution { return append(standard: standard) }
        if appendSubstitution(.type(type)) { return }
        if let outer = name.outer {
            append(.nominal(outer, []))
        } else {
            append(module: name.module)
        }
        append(identifier: name.name)
        if name.kind == .protocol {
            append("_p")
        } else {
            append(String(name.kind.rawValue))
            add(.type(type))
        }
    }

    private mutating func append(module: String) {
        if module == "Swift" { append("s") } else { append(identifier: module) }
    }

    private mutating func append(_ text: String) { buffer += text.utf8 }

    // MARK: - Substitutions

    private mutating func add(_ key: Key) { substitutions[key] = substitutions.count }

    private mutating func appendSubstitution(_ key: Key) -> Bool {
        guard let index = substitutions[key] else { return false }
        if index >= 26 {
            // It is an index: 0 is `_`, and others are one less.
            append(index == 26 ? "A_" : "A\(index - 27)_")
        } else {
            let letter = UInt8(ascii: "A") + UInt8(index)
            if !merges(letter, isStandard: false) {
                buffer += [UInt8(ascii: "A"), letter]
            }
        }
        return true
    }

    private mutating func append(standard: String) {
        let bytes = Array(standard.utf8)
        guard bytes.count == 1 else { return append("S" + standard) }
        if !merges(bytes[0], isStandard: true) { buffer += [UInt8(ascii: "S"), bytes[0]] }
    }

    /// Merges a substitution with the one before: `AB` and `AC` become `AbC`, `SS` twice becomes `S2S`.
    private mutating func merges(_ letter: UInt8, isStandard: Bool) -> Bool {
        if last.count > 0, last.count < Self.maximumRepeats, buffer.count == last.position + last.size,
            last.isStandard == isStandard, let previous = buffer.last
        {
            if previous != letter, !isStandard {
                last.position = buffer.count
                last.count = 1
                last.size = 1
                buffer[buffer.count - 1] = previous + 32
                buffer.append(letter)
                return true
            }
            if previous == letter {
                last.count += 1
                buffer.removeSubrange(last.position...)
                buffer += "\(last.count)".utf8
                buffer.append(letter)
                last.size = buffer.count - last.position
                return true
            }
        }
        last = LastSubstitution(position: buffer.count + 1, size: 1, count: 1, isStandard: isStandard)
        return false
    }

    // MARK: - Identifiers

    private mutating func append(identifier: String) {
        if appendSubstitution(.identifier(identifier)) { return }
        add(.identifier(identifier))
        let bytes = Array(identifier.utf8)
        let known = words.count
        let replacements = replacements(in: bytes)
        if !replacements.isEmpty { append("0") }
        var position = 0
        var newWord = known
        for (index, replacement) in (replacements + [(position: bytes.count, word: nil)]).enumerated() {
            if position < replacement.position {
                append("\(replacement.position - position)")
                while position < replacement.position {
                    // The positions of new words were relative to the identifier.
                    if newWord < words.count, words[newWord].start == position {
                        words[newWord].start = buffer.count
                        newWord += 1
                    }
                    buffer.append(bytes[position])
                    position += 1
                }
            }
            guard let word = replacement.word else { continue }
            position += words[word].length
            let isLast = index == replacements.count - 1
            buffer.append(UInt8(word) + (isLast ? UInt8(ascii: "A") : UInt8(ascii: "a")))
            if isLast, position == bytes.count { append("0") }
        }
    }

    /// The words of an identifier that were written before.
    ///
    /// Its new words are noted.
    private mutating func replacements(in bytes: [UInt8]) -> [(position: Int, word: Int?)] {
        let known = words.count
        var found: [(position: Int, word: Int?)] = []
        var start: Int?
        for position in 0...bytes.count {
            let byte = position < bytes.count ? bytes[position] : 0
            if let first = start, Self.endsWord(byte, after: bytes[position - 1]) {
                let word = bytes[first..<position]
                let index =
                    words[..<known].firstIndex { buffer[$0.start..<$0.start + $0.length].elementsEqual(word) }
                    ?? words[known...].firstIndex { bytes[$0.start..<$0.start + $0.length].elementsEqual(word) }
                if let index {
                    found.append((first, index))
                } else if word.count >= 2, words.count < Self.maximumWords {
                    words.append((first, word.count))
                }
                start = nil
            }
            if start == nil, Self.startsWord(byte) { start = position }
        }
        return found
    }

    private static func startsWord(_ byte: UInt8) -> Bool {
        !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) && byte != UInt8(ascii: "_") && byte != 0
    }

    private static func endsWord(_ byte: UInt8, after previous: UInt8) -> Bool {
        byte == UInt8(ascii: "_") || byte == 0 || (!isUpper(previous) && isUpper(byte))
    }

    private static func isUpper(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }
}
