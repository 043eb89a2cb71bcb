/// An item with its relationships, as a plain value.
///
/// It shares no code with the framework.
struct PairPicture: Equatable, CustomStringConvertible {
    /// The properties that operations change.
    enum Field: String, CaseIterable, Comparable {
        case number, text, blob, owner, parts, tags

        static func < (one: Field, other: Field) -> Bool { one.rawValue < other.rawValue }
    }

    var number = 0
    var text: String?
    /// The number of bytes of the external data.
    var blob = 0
    var owner: String?
    var parts: [String] = []
    var tags: Set<String> = []

    /// The value of a field, for comparisons.
    func value(_ field: Field) -> AnyHashable {
        switch field {
        case .number: number
        case .text: text
        case .blob: blob
        case .owner: owner
        case .parts: parts
        case .tags: tags
        }
    }

    /// Takes over the value of a field.
    mutating func take(_ field: Field, from other: PairPicture) {
        switch field {
        case .number: number = other.number
        case .text: text = other.text
        case .blob: blob = other.blob
        case .owner: owner = other.owner
        case .parts: parts = other.parts
        case .tags: tags = other.tags
        }
    }

    var description: String {
        "\(number) \(text ?? "-") \(blob)B owner \(owner ?? "-") parts \(parts) tags \(tags.sorted())"
    }
}

/// What a context and its store should show of one item.
struct PairReference {
    /// The stored item; `nil` for none.
    var stored: PairPicture?
    /// The item in the context; `nil` for none.
    var seen: PairPicture?
    /// The fields that the context has changed and not saved.
    var changed: Set<PairPicture.Field> = []
    /// The item before the last change that can be undone, and the fields that were unsaved then.
    var undone: (picture: PairPicture?, changed: Set<PairPicture.Field>)?
    /// The item before the undo.
    var redone: (picture: PairPicture?, changed: Set<PairPicture.Field>)?

    /// Whether the context has unsaved changes of the item.
    var isPending: Bool { !changed.isEmpty || (seen == nil) != (stored == nil) }

    /// A change in the context.
    mutating func edit(_ field: PairPicture.Field?, _ change: (inout PairPicture) -> Void) {
        guard var picture = seen else { return }
        undone = (picture, changed)
        redone = nil
        change(&picture)
        seen = picture
        if let field { changed.insert(field) }
    }

    /// A change of another context that was saved, and that the context has merged.
    mutating func merge(_ field: PairPicture.Field, _ change: (inout PairPicture) -> Void) {
        guard var picture = stored else { return }
        change(&picture)
        stored = picture
        if !changed.contains(field) { seen?.take(field, from: picture) }
        forgetUndo()
    }

    /// What undo does to values that were saved or merged since is tested elsewhere.
    mutating func forgetUndo() { (undone, redone) = (nil, nil) }

    mutating func save() {
        stored = seen
        changed = []
        forgetUndo()
    }

    mutating func discard() {
        seen = stored
        changed = []
        forgetUndo()
    }
}
