/// The names in a dependency field such as `libc6 (>= 2.34), default-mta | mail-transport-agent, python3:any`.
///
/// Commas separate the requirements, and bars the alternatives of one. Version constraints in parentheses, architecture
/// lists in brackets, build profiles in angle brackets and `:architecture` suffixes restrict how a name may be
/// satisfied. Only the name is kept.
enum DependencyList {
    /// Adds the names in `field` to `names`, in the order in which they appear.
    ///
    /// Names may be repeated. Pieces that contain no valid package name are left out.
    static func appendNames(in field: UnsafeRawBufferPointer, to names: inout [String]) {
        var position = 0
        while position < field.count {
            let end = endOfAlternative(in: field, from: position)
            if let name = name(in: UnsafeRawBufferPointer(rebasing: field[position..<end])) {
                names.append(name)
            }
            position = end + 1
        }
    }

    /// The names in `field`, in the order in which they appear, each only once.
    static func names(in field: String) -> [String] {
        var names: [String] = []
        var field = field
        field.withUTF8 { appendNames(in: UnsafeRawBufferPointer($0), to: &names) }
        names.removeRepeats()
        return names
    }

    /// The end of an alternative.
    ///
    /// Commas and bars inside parentheses belong to the constraint, not to the list.
    private static func endOfAlternative(in field: UnsafeRawBufferPointer, from start: Int) -> Int {
        var depth = 0
        for position in start..<field.count {
            switch field[position] {
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"): depth = max(0, depth - 1)
            case UInt8(ascii: ","), UInt8(ascii: "|"):
                if depth == 0 { return position }
            default: break
            }
        }
        return field.count
    }

    private static func name(in alternative: UnsafeRawBufferPointer) -> String? {
        guard let start = alternative.firstIndex(where: { !isBlank($0) }) else { return nil }
        let end = alternative[start...].firstIndex(where: { !isNameByte($0) }) ?? alternative.endIndex
        guard end > start, isAlphanumeric(alternative[start]) else { return nil }
        return String(decoding: alternative[start..<end], as: UTF8.self)
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || (0x09...0x0D).contains(byte)
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default:
            false
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        isAlphanumeric(byte) || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
            || byte == UInt8(ascii: "_")
    }
}

extension [String] {
    /// Keeps only the first of equal elements.
    mutating func removeRepeats() {
        guard count > 1 else { return }
        var seen = Set<String>(minimumCapacity: count)
        removeAll { !seen.insert($0).inserted }
    }
}
