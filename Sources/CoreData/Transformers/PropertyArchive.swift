import StrataPredicates

/// Archives the values of transformable attributes, and reads such archives, also those that Apple's systems wrote.
///
/// Plain values (strings, numbers, dates, data, URLs, UUIDs, null and collections of them) are written and read here, for
/// Foundation's archiver stops the program on damaged archives and on decimal numbers. Objects of other classes go through
/// Foundation's, after the archive has been checked.
struct PropertyArchive: Sendable {
    /// Which classes may be in an archive.
    enum Rule: @unchecked Sendable {
        // @unchecked Sendable: classes are constants.

        /// The plain values; at the top only the classes listed, and inside also those.
        case classes([AnyClass])

        /// The plain values, and all classes of the program that support secure coding.
        case secureCoding

        /// The plain values, and all classes of the program that support coding.
        case anyCoding
    }

    let rule: Rule

    /// The classes of plain values, as ``NSSecureUnarchiveFromDataTransformer`` lists them.
    static let valueClasses: [AnyClass] = [
        NSArray.self, NSDictionary.self, NSSet.self, NSString.self, NSNumber.self, NSDate.self, NSData.self, NSURL.self,
        NSUUID.self, NSNull.self,
    ]

    /// How deeply values may nest.
    static let maximumDepth = 128

    /// The archive of a value, or `nil` when a part of it is of a class that cannot be archived or is not allowed.
    func data(for value: Any) -> Data? {
        var writer = PropertyArchiveWriter(rule: rule)
        guard allowsAtTop(value), let number = writer.write(value, depth: 0) else { return nil }
        guard writer.hasForeignObjects else { return writer.finish(root: number) }
        let data = try? NSKeyedArchiver.archivedData(withRootObject: value, requiringSecureCoding: false)
        // What cannot be read back must not be saved.
        return data.flatMap { object(in: $0) == nil ? nil : $0 }
    }

    /// The value in an archive, or `nil` when it is damaged or has objects of classes that are not known or not allowed.
    func object(in data: Data) -> Any? {
        guard let archive = try? KeyedArchive(data) else { return nil }
        var reader = PropertyArchiveReader(archive: archive, rule: rule)
        guard let value = reader.read(archive.root, depth: 0) else { return nil }
        guard reader.hasForeignObjects else { return allowsAtTop(value) ? value : nil }
        guard let unarchiver = try? NSKeyedUnarchiver(forReadingFrom: data) else { return nil }
        defer { unarchiver.finishDecoding() }
        // The reader has checked all classes against the rule.
        unarchiver.requiresSecureCoding = false
        unarchiver.decodingFailurePolicy = .setErrorAndReturn
        guard let object = unarchiver.decodeObject(forKey: NSKeyedArchiveRootObjectKey), unarchiver.error == nil else {
            return nil
        }
        return allowsAtTop(object) ? object : nil
    }

    /// Whether the class of the whole value is one that the rule lists.
    ///
    /// A Swift value counts as the class it bridges to.
    private func allowsAtTop(_ value: Any) -> Bool {
        guard case .classes(let classes) = rule else { return true }
        guard let type = PlainValue(value)?.bridgedClass ?? (value as? NSObject).map({ Swift.type(of: $0) }) else {
            return false
        }
        return classes.contains { inherits(type, from: $0) }
    }
}

extension PropertyArchive.Rule {
    /// Whether objects of a class that is not a plain value may be archived and read.
    func allows(_ type: AnyClass) -> Bool {
        // Foundation's archiver stops the program on these.
        if type is NSError.Type || type is NSDecimalNumber.Type { return false }
        switch self {
        case .classes(let classes):
            return supportsSecureCoding(type) && classes.contains { inherits(type, from: $0) }
        case .secureCoding: return supportsSecureCoding(type)
        case .anyCoding: return type is any NSCoding.Type
        }
    }

    private func supportsSecureCoding(_ type: AnyClass) -> Bool {
        (type as? any NSSecureCoding.Type)?.supportsSecureCoding ?? false
    }
}

/// Whether a class is another one, or inherits from it.
private func inherits(_ type: AnyClass, from ancestor: AnyClass) -> Bool {
    // `_getSuperclass` is public in the standard library; Linux has no Objective-C runtime to ask.
    sequence(first: type, next: { _getSuperclass($0) }).contains { $0 == ancestor }
}
