import StrataPredicates

/// Archives the values of transformable attributes, and reads such archives, including those from Apple's systems.
///
/// Plain values (strings, numbers, dates, data, URLs, UUIDs, null and collections of them) are written and read here,
/// because Foundation's archiver stops the program on damaged archives and on decimal numbers. Foundation's archiver
/// handles objects of other classes, after the archive has been checked.
package struct PropertyArchive: Sendable {
    /// The classes that may be in an archive.
    package enum Rule: @unchecked Sendable {
        // @unchecked Sendable: classes are constants.

        /// The plain values; at the top only the listed classes, and inside also the listed classes.
        case classes([AnyClass])

        /// The plain values, and all classes of the program that support secure coding.
        case secureCoding

        /// The plain values, and all classes of the program that support coding.
        case anyCoding
    }

    let rule: Rule

    /// The classes of plain values, in the list for ``NSSecureUnarchiveFromDataTransformer``.
    package init(rule: Rule) {
        self.rule = rule
    }
    package static let valueClasses: [AnyClass] = [
        NSArray.self, NSDictionary.self, NSSet.self, NSString.self, NSNumber.self, NSDate.self, NSData.self, NSURL.self,
        NSUUID.self, NSNull.self,
    ]

    /// The maximum depth of nested values.
    static let maximumDepth = 128

    /// The archive of a value; `nil` if any part has a class that cannot be archived or is not allowed.
    package func data(for value: Any) -> Data? {
        var writer = PropertyArchiveWriter(rule: rule)
        guard allowsAtTop(value), let number = writer.write(value, depth: 0) else { return nil }
        guard writer.hasForeignObjects else { return writer.finish(root: number) }
        let data = try? NSKeyedArchiver.archivedData(withRootObject: value, requiringSecureCoding: false)
        // A value that cannot be read back must not be saved.
        return data.flatMap { object(in: $0) == nil ? nil : $0 }
    }

    /// The value in an archive; `nil` if it is damaged or has objects of classes that are unknown or not allowed.
    package func object(in data: Data) -> Any? {
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

    /// Whether the rule lists the class of the whole value.
    ///
    /// A Swift value counts as an object of the class to which it bridges.
    private func allowsAtTop(_ value: Any) -> Bool {
        guard case .classes(let classes) = rule else { return true }
        guard let type = PlainValue(value)?.bridgedClass ?? (value as? NSObject).map({ Swift.type(of: $0) }) else {
            return false
        }
        return classes.contains { inherits(type, from: $0) }
    }
}

extension PropertyArchive.Rule {
    /// Whether objects of a class, which are no plain values, may be archived and read.
    func allows(_ type: AnyClass) -> Bool {
        // Foundation's archiver stops the program for these classes.
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
    // `_getSuperclass` is public in the standard library; Linux has no Objective-C runtime.
    sequence(first: type, next: { _getSuperclass($0) }).contains { $0 == ancestor }
}
